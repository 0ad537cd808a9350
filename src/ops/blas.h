// Row-major fp32 matrix products on raw pointers, for blocks too small for a tensor op each. The
// BLAS is the one inside libtorch; inside at::parallel_for it runs on the calling thread.
#pragma once

#include <cstdint>

namespace antisd {

enum class Transpose { kNo, kYes };

// C[m, n] = alpha * op(A)[m, k] * op(B)[k, n] + beta * C; a row of A, B, C is lda, ldb, ldc floats.
void matrix_product(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n,
                    std::int64_t k, float alpha, const float* a, std::int64_t lda, const float* b,
                    std::int64_t ldb, float beta, float* c, std::int64_t ldc);

}  // namespace antisd
