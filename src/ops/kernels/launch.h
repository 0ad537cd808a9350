// What every launcher of a kernel does around the launch, on the host.
#pragma once

#include <algorithm>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace antisd::inline ops {

// Throws RunError.
[[noreturn]] void fail_launch(const char* kernel, cudaError_t status);

// Call after each launch: a launch that the driver refuses would otherwise leave its output unset.
inline void check_launch(const char* kernel) {
  if (const cudaError_t status = cudaPeekAtLastError(); status != cudaSuccess) {
    fail_launch(kernel, status);
  }
}

// 16-byte accesses need every pointer and every row of elements to begin at a multiple of 16 bytes.
template <typename... Pointers>
bool aligned_to_16(Pointers... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Blocks for `items` of work, `per_block` each. A grid has a limit; kernels step by gridDim past
// it.
inline unsigned grid_for(std::int64_t items, std::int64_t per_block) {
  return static_cast<unsigned>(std::min<std::int64_t>(ceil_div(items, per_block), 0x7fffffff));
}

}  // namespace antisd::inline ops
