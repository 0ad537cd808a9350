// Where GPU time goes, kernel by kernel: what a tuner reads beside a benchmark's figure.
//
//   print_kernel_profile([&] { step(); });
#pragma once

#include <functional>

namespace antisd::bench {

// Runs `work` once under the tensor library's tracer and prints the kernels that took most of the
// device's time: milliseconds, calls, name. `work` must wait for the device before it returns.
void print_kernel_profile(const std::function<void()>& work, int lines = 30);

}  // namespace antisd::bench
