#include "ops/blas.h"

// Fortran's interface: column-major, arguments by address.
extern "C" void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
                       const int* k, const float* alpha, const float* a, const int* lda,
                       const float* b, const int* ldb, const float* beta, float* c, const int* ldc);

namespace antisd {

void matrix_product(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n,
                    std::int64_t k, float alpha, const float* a, std::int64_t lda, const float* b,
                    std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  const auto letter = [](Transpose t) { return t == Transpose::kYes ? 'T' : 'N'; };
  // A row-major product is the column-major product of the transposes in reverse order.
  const char first = letter(transpose_b), second = letter(transpose_a);
  const int rows = static_cast<int>(n), columns = static_cast<int>(m), inner = static_cast<int>(k);
  const int first_stride = static_cast<int>(ldb), second_stride = static_cast<int>(lda);
  const int result_stride = static_cast<int>(ldc);
  sgemm_(&first, &second, &rows, &columns, &inner, &alpha, b, &first_stride, a, &second_stride,
         &beta, c, &result_stride);
}

}  // namespace antisd
