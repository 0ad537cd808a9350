#include "ops/tile_product.h"

#include <algorithm>

namespace antisd::inline ops {
namespace {

namespace plain {
#define ANTISD_LANES 4
#define ANTISD_ROWS 2
#include "ops/tile_kernel.inc"
#undef ANTISD_LANES
#undef ANTISD_ROWS
}  // namespace plain

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
namespace avx2 {
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
#define ANTISD_LANES 8
#define ANTISD_ROWS 6
#include "ops/tile_kernel.inc"
#undef ANTISD_LANES
#undef ANTISD_ROWS
#pragma GCC pop_options
}  // namespace avx2

namespace avx512 {
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
#define ANTISD_LANES 16
#define ANTISD_ROWS 8
#include "ops/tile_kernel.inc"
#undef ANTISD_LANES
#undef ANTISD_ROWS
#pragma GCC pop_options
}  // namespace avx512
#endif

std::vector<TileKernels> find_kernels() {
  std::vector<TileKernels> found;
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) {
    found.push_back({"avx512", avx512::product, avx512::transpose});
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    found.push_back({"avx2", avx2::product, avx2::transpose});
#endif
  found.push_back({"plain", plain::product, plain::transpose});
  return found;
}

const TileKernels kKernels = find_kernels().front();

}  // namespace

std::vector<TileKernels> tile_kernels() {
  return find_kernels();
}

void tile_product(std::int64_t m, std::int64_t n, std::int64_t k, StridedMatrix a, const float* b,
                  std::int64_t b_row, float* c, std::int64_t c_row, bool add) {
  kKernels.product(m, n, k, a, b, b_row, c, c_row, add);
}

void transpose_tile(const float* from, std::int64_t from_row, std::int64_t rows,
                    std::int64_t columns, float* to, std::int64_t to_row,
                    std::int64_t padded_rows) {
  kKernels.transpose(from, from_row, rows, columns, to, to_row);
  if (rows >= padded_rows) return;
  for (std::int64_t column = 0; column < columns; ++column)
    std::fill(to + column * to_row + rows, to + column * to_row + padded_rows, 0.0f);
}

}  // namespace antisd::inline ops
