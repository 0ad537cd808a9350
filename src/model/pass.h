// What a forward pass is for. The caller says so; whether this thread records gradients decides
// nothing.
#pragma once

namespace antisd::inline model {

enum class Pass {
  kInference,   // values alone
  kTraining,    // and gradients, from what the pass keeps
  kRecomputed,  // and gradients, each layer computed again in the backward pass
};

inline Pass training_pass(bool recomputed) {
  return recomputed ? Pass::kRecomputed : Pass::kTraining;
}

}  // namespace antisd::inline model
