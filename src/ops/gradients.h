// Whether the result of an op leads back to its operands. The caller says so: whether this thread
// records gradients decides nothing.
#pragma once

namespace antisd::inline ops {

enum class Gradients {
  kNone,      // values alone
  kRecorded,  // a backward pass may follow
};

}  // namespace antisd::inline ops
