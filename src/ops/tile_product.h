// Matrix products of tiles that fit in a core's cache, on the calling thread: the start-up time of
// a BLAS is longer than such a product.
//
//   tile_product(rows, keys, dim, {q, q_stride, 1}, k_transposed, keys, scores, keys,
//                /*add=*/false);
#pragma once

#include <cstdint>
#include <vector>

namespace antisd::inline ops {

// The number at (i, j) is data[i * row + j * column]; a transpose swaps the strides.
struct StridedMatrix {
  const float* data;
  std::int64_t row, column;
};

// C[m, n] = A[m, k] B[k, n], added to C if `add`. Rows of B and C are dense and b_row, c_row floats
// apart. Fastest if n is a multiple of 16.
void tile_product(std::int64_t m, std::int64_t n, std::int64_t k, StridedMatrix a, const float* b,
                  std::int64_t b_row, float* c, std::int64_t c_row, bool add);

// to[column, row] = from[row, column]; rows of `to` are to_row floats apart and padded with zeros
// to `padded_rows` numbers.
void transpose_tile(const float* from, std::int64_t from_row, std::int64_t rows,
                    std::int64_t columns, float* to, std::int64_t to_row,
                    std::int64_t padded_rows = 0);

// The same for one set of vector instructions; transpose does not pad.
struct TileKernels {
  const char* name;
  void (*product)(std::int64_t m, std::int64_t n, std::int64_t k, StridedMatrix a, const float* b,
                  std::int64_t b_row, float* c, std::int64_t c_row, bool add);
  void (*transpose)(const float* from, std::int64_t from_row, std::int64_t rows,
                    std::int64_t columns, float* to, std::int64_t to_row);
};

// Those that this machine can run; the one in use is first.
std::vector<TileKernels> tile_kernels();

}  // namespace antisd::inline ops
