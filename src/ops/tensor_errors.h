// What the tensor library throws, as errors of ours: one message with the remedy, without its stack
// trace.
//
//   with_tensor_errors([&] { status = command(); });
//
// Memory that cannot be had names how much was asked for, how much is free, and what to lower.
#pragma once

#include <functional>

namespace antisd::inline ops {

// Runs `work`; RunError in place of c10::Error and std::bad_alloc. Other exceptions pass.
void with_tensor_errors(const std::function<void()>& work);

}  // namespace antisd::inline ops
