// Turns the tensor library's exceptions into our errors: one message with a remedy, without a stack
// trace.
//
//   with_tensor_errors([&] { status = command(); });
//
// For a failed allocation, the message says how much was requested, how much is free, and what to
// reduce.
#pragma once

#include <functional>

namespace antisd::inline ops {

// Runs `work`; throws RunError instead of c10::Error and std::bad_alloc. Other exceptions pass.
void with_tensor_errors(const std::function<void()>& work);

}  // namespace antisd::inline ops
