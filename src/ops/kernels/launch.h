// Host code that every kernel launcher needs.
#pragma once

#include <algorithm>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace antisd::inline ops {

// Throws RunError.
[[noreturn]] void fail_launch(const char* kernel, cudaError_t status);

// Call it after each launch: a launch that fails would otherwise leave its output unset.
inline void check_launch(const char* kernel) {
  if (const cudaError_t status = cudaPeekAtLastError(); status != cudaSuccess) {
    fail_launch(kernel, status);
  }
}

// 16-byte accesses need every pointer and every row to start at a multiple of 16 bytes.
template <typename... Pointers>
bool aligned_to_16(Pointers... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Blocks for `items` of work, `per_block` each. The grid size is limited; kernels loop with a
// stride of gridDim beyond it.
inline unsigned grid_for(std::int64_t items, std::int64_t per_block) {
  return static_cast<unsigned>(std::min<std::int64_t>(ceil_div(items, per_block), 0x7fffffff));
}

}  // namespace antisd::inline ops
