// GPU time by kernel, for tuning.
//
//   print_kernel_profile([&] { step(); });
#pragma once

#include <functional>

namespace antisd::bench {

// Runs `work` once under the tensor library's tracer and prints the kernels with the most device
// time: milliseconds, calls, name. `work` must synchronise with the device before it returns.
void print_kernel_profile(const std::function<void()>& work, int lines = 30);

}  // namespace antisd::bench
