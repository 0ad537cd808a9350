#include "ops/tile_product.h"

#include <random>
#include <vector>

#include <gmock/gmock.h>

namespace antisd::inline ops {
namespace {

std::vector<float> random_numbers(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float& value : values)
    value = uniform(generator);
  return values;
}

// Against three loops in double, with rows longer than the part used and both strides of A; numbers
// outside C must not change.
void expect_equals_three_loops(const TileKernels& kernels) {
  for (const std::int64_t m : {1, 5, 6, 7, 8, 15, 24}) {
    for (const std::int64_t n : {1, 16, 31, 48}) {
      for (const std::int64_t k : {1, 13, 32}) {
        for (const bool transposed : {false, true}) {
          for (const bool add : {false, true}) {
            const std::int64_t b_row = n + 3, c_row = n + 5;
            const auto a = random_numbers((m + 2) * (k + 2), 1), b = random_numbers(k * b_row, 2);
            const auto before = random_numbers(m * c_row, 3);
            const StridedMatrix matrix =
                transposed ? StridedMatrix{a.data(), 1, m + 1} : StridedMatrix{a.data(), k + 1, 1};
            std::vector<float> c = before;
            kernels.product(m, n, k, matrix, b.data(), b_row, c.data(), c_row, add);
            for (std::int64_t i = 0; i < m; ++i) {
              for (std::int64_t j = 0; j < c_row; ++j) {
                double expected = j < n && !add ? 0 : before[i * c_row + j];
                for (std::int64_t p = 0; p < k && j < n; ++p)
                  expected +=
                      static_cast<double>(a[i * matrix.row + p * matrix.column]) * b[p * b_row + j];
                ASSERT_NEAR(c[i * c_row + j], expected, 1e-5)
                    << kernels.name << ' ' << m << ' ' << n << ' ' << k << ' ' << transposed << ' '
                    << add;
              }
            }
          }
        }
      }
    }
  }
}

TEST(TileProduct, EqualsThreeLoopsWithEveryKindOfInstructions) {
  for (const TileKernels& kernels : tile_kernels())
    expect_equals_three_loops(kernels);
}

TEST(TransposeTile, ExchangesRowsAndColumnsWithEveryKindOfInstructions) {
  for (const TileKernels& kernels : tile_kernels()) {
    const std::int64_t rows = 37, columns = 27;
    const auto from = random_numbers(rows * columns, 5);
    std::vector<float> to(rows * columns);
    kernels.transpose(from.data(), columns, rows, columns, to.data(), rows);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column)
        ASSERT_EQ(to[column * rows + row], from[row * columns + column]) << kernels.name;
    }
  }
}

TEST(TransposeTile, ExchangesRowsAndColumnsAndPadsWithZeros) {
  for (const std::int64_t rows : {1, 8, 16, 37}) {
    for (const std::int64_t columns : {1, 5, 8, 27}) {
      const std::int64_t from_row = columns + 2, padded = rows + 11;
      const auto from = random_numbers(rows * from_row, 4);
      std::vector<float> to(columns * (padded + 1), 9);
      transpose_tile(from.data(), from_row, rows, columns, to.data(), padded + 1, padded);
      for (std::int64_t column = 0; column < columns; ++column) {
        for (std::int64_t row = 0; row < padded; ++row)
          EXPECT_EQ(to[column * (padded + 1) + row],
                    row < rows ? from[row * from_row + column] : 0);
        EXPECT_EQ(to[column * (padded + 1) + padded], 9);
      }
    }
  }
}

}  // namespace
}  // namespace antisd::inline ops
