#include "ops/tile_product.h"

#include <algorithm>

namespace antisd {
namespace {

namespace plain {
#define ANTISD_LANES 4
#include "ops/tile_kernel.inc"
#undef ANTISD_LANES
}  // namespace plain

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
namespace avx2 {
#pragma GCC push_options
#pragma GCC target("arch=haswell")
#define ANTISD_LANES 8
#include "ops/tile_kernel.inc"
#undef ANTISD_LANES
#pragma GCC pop_options
}  // namespace avx2

bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has;
}
#endif

}  // namespace

void tile_product(std::int64_t m, std::int64_t n, std::int64_t k, StridedMatrix a, const float* b,
                  std::int64_t b_row, float* c, std::int64_t c_row, bool add) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  if (has_avx2()) return avx2::product(m, n, k, a, b, b_row, c, c_row, add);
#endif
  plain::product(m, n, k, a, b, b_row, c, c_row, add);
}

void transpose_tile(const float* from, std::int64_t from_row, std::int64_t rows,
                    std::int64_t columns, float* to, std::int64_t padded_rows) {
  constexpr std::int64_t kStrip = 16;  // rows whose cache lines stay at hand
  for (std::int64_t first = 0; first < rows; first += kStrip) {
    const std::int64_t count = std::min(kStrip, rows - first);
    for (std::int64_t column = 0; column < columns; ++column) {
      for (std::int64_t i = 0; i < count; ++i)
        to[column * padded_rows + first + i] = from[(first + i) * from_row + column];
    }
  }
  for (std::int64_t column = 0; column < columns; ++column) {
    for (std::int64_t row = rows; row < padded_rows; ++row)
      to[column * padded_rows + row] = 0;
  }
}

}  // namespace antisd
