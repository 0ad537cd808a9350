#include "ops/quantized_weight.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace antisd::inline ops {
namespace {

// The normal distribution's quantile, by bisection.
double normal_quantile(double p) {
  double low = -10, high = 10;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return low;
}

// QLoRA's construction: quantiles at 9 even places from 0.9677 to 1/2 upwards and 8 downwards, each
// without the last, and 0; divided by the largest.
std::array<double, 16> nf4_construction() {
  const double offset = ((1 - 1.0 / 30) + (1 - 1.0 / 32)) / 2;
  std::array<double, 16> levels = {};
  for (int i = 0; i < 8; ++i)
    levels[i] = normal_quantile(offset + (0.5 - offset) * i / 8);
  for (int i = 0; i < 7; ++i)
    levels[8 + i] = -normal_quantile(offset + (0.5 - offset) * i / 7);
  std::ranges::sort(levels);
  const double largest = levels.back();
  for (double& level : levels)
    level /= largest;
  return levels;
}

TEST(QuantizedWeight, LevelsAreThoseOfQlora) {
  const std::array<double, 16> levels = nf4_construction();
  for (int i = 0; i < 16; ++i)
    EXPECT_NEAR(nf4_level(i), levels[i], 1e-6) << i;
  EXPECT_EQ(nf4_level(kNf4Zero), 0);
}

QuantizedWeight quantized(QuantizedKind kind, const at::Tensor& values) {
  QuantizedWeight weight = empty_quantized(kind, values.sizes().vec(), at::kCPU);
  quantize_into(values, weight);
  return weight;
}

// What an element of `group`, which shares a scale, may become: the numbers of the format that are
// nearest to it, in double, by trying all.
void expect_nearest(QuantizedKind kind, const std::vector<double>& group,
                    const std::vector<double>& results) {
  double largest = 0;
  for (const double element : group)
    largest = std::max(largest, std::abs(element));
  std::vector<double> numbers;
  if (kind == QuantizedKind::kInt8) {
    for (int code = -127; code <= 127; ++code)
      numbers.push_back(code * largest / 127);
  } else {
    for (const double level : nf4_construction())
      numbers.push_back(level * largest);
  }
  for (std::size_t i = 0; i < group.size(); ++i) {
    double nearest = std::numeric_limits<double>::infinity();
    for (const double number : numbers)
      nearest = std::min(nearest, std::abs(number - group[i]));
    EXPECT_LE(std::abs(results[i] - group[i]), nearest + 1e-6 * largest) << group[i];
    double to_number = std::numeric_limits<double>::infinity();
    for (const double number : numbers)
      to_number = std::min(to_number, std::abs(number - results[i]));
    EXPECT_LE(to_number, 1e-6 * largest) << results[i];
  }
}

TEST(QuantizedWeight, AnElementBecomesTheNearestNumberOfItsGroup) {
  at::manual_seed(1);
  for (const QuantizedKind kind : {QuantizedKind::kInt8, QuantizedKind::kNf4}) {
    for (const auto& [rows, columns] :
         {std::pair{1, 1}, {1, 64}, {3, 65}, {40, 130}, {2, 128}, {5, 15}, {7, 17}}) {
      for (const double scale : {1.0, 1e-30, 1e30}) {
        const at::Tensor values = (at::randn({rows, columns}) * scale).to(at::kFloat);
        const at::Tensor results = dequantize(quantized(kind, values), at::kFloat);
        ASSERT_EQ(results.sizes(), values.sizes());
        const std::int64_t width = kind == QuantizedKind::kInt8 ? columns : 64;
        for (std::int64_t row = 0; row < rows; ++row) {
          for (std::int64_t first = 0; first < columns; first += width) {
            std::vector<double> group, group_results;
            for (std::int64_t i = first; i < std::min<std::int64_t>(first + width, columns); ++i) {
              group.push_back(values[row][i].item<float>());
              group_results.push_back(results[row][i].item<float>());
            }
            expect_nearest(kind, group, group_results);
          }
        }
      }
    }
  }
}

TEST(QuantizedWeight, CodesHaveTheirPlaces) {
  at::Tensor values = at::zeros({2, 66});
  values[1][0] = -2;
  values[1][3] = 2;
  values[1][65] = 0.5;
  const QuantizedWeight nf4 = quantized(QuantizedKind::kNf4, values);
  ASSERT_EQ(nf4.codes.sizes(), at::IntArrayRef({2, 64}));
  ASSERT_EQ(nf4.scales.sizes(), at::IntArrayRef({2, 2}));
  const auto byte = [&](std::int64_t row, std::int64_t i) {
    return nf4.codes[row][i].item<std::uint8_t>();
  };
  EXPECT_EQ(byte(0, 0), 0x77);
  EXPECT_EQ(byte(1, 0), 0x70);  // -1 in the lower half
  EXPECT_EQ(byte(1, 1), 0xf7);
  EXPECT_EQ(byte(1, 32), 0xf7);
  EXPECT_EQ(byte(1, 33), 0x77);  // padding
  EXPECT_EQ(nf4.scales[1][0].item<float>(), 2);
  EXPECT_EQ(nf4.scales[1][1].item<float>(), 0.5);
  const QuantizedWeight int8 = quantized(QuantizedKind::kInt8, values);
  ASSERT_EQ(int8.codes.sizes(), at::IntArrayRef({2, 80}));
  EXPECT_EQ(int8.codes[1][0].item<std::int8_t>(), -127);
  EXPECT_EQ(int8.codes[1][65].item<std::int8_t>(), 32);  // 31.75
  EXPECT_EQ(int8.codes[1][70].item<std::int8_t>(), 0);
  EXPECT_EQ(int8.scales[1].item<float>(), 2.0f / 127);
}

TEST(QuantizedWeight, ZerosStayZeros) {
  for (const QuantizedKind kind : {QuantizedKind::kInt8, QuantizedKind::kNf4}) {
    at::Tensor values = at::randn({4, 100});
    values[2].zero_();
    values[3].slice(0, 5, 90).zero_();
    const at::Tensor results = dequantize(quantized(kind, values), at::kFloat);
    EXPECT_TRUE(results.masked_select(values == 0).eq(0).all().item<bool>());
  }
}

TEST(QuantizedWeight, TheEndsOfTheRangeAreFinite) {
  for (const QuantizedKind kind : {QuantizedKind::kInt8, QuantizedKind::kNf4}) {
    for (const float largest : {3.38e38f, 65504.0f, 1e-37f, 1e-40f, 1.5e-45f}) {
      const at::Tensor values = at::tensor({largest, -largest, largest / 2, 0.0f}).view({1, 4});
      const at::Tensor results = dequantize(quantized(kind, values), at::kFloat);
      EXPECT_TRUE(results.isfinite().all().item<bool>()) << largest;
      EXPECT_LE((results - values).abs().max().item<double>(), 0.06 * double{largest} + 1e-43);
    }
  }
}

TEST(QuantizedWeight, NanAndInfinityShowInTheScales) {
  for (const QuantizedKind kind : {QuantizedKind::kInt8, QuantizedKind::kNf4}) {
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      for (const std::int64_t place : {0, 70, 99}) {
        at::Tensor values = at::randn({3, 100});
        EXPECT_TRUE(quantized(kind, values).scales.isfinite().all().item<bool>());
        values[1][place] = bad;
        EXPECT_FALSE(quantized(kind, values).scales.isfinite().all().item<bool>());
      }
    }
  }
}

// Tensors of a file are parts of the rows, or of the experts, of a matrix in memory.
TEST(QuantizedWeight, PartsOfTheRowsAreQuantizedAlone) {
  const at::Tensor values = at::randn({2, 9, 70});
  for (const QuantizedKind kind : {QuantizedKind::kInt8, QuantizedKind::kNf4}) {
    const QuantizedWeight whole = quantized(kind, values);
    const QuantizedWeight parts = empty_quantized(kind, {2, 9, 70}, at::kCPU);
    for (std::int64_t expert = 0; expert < 2; ++expert) {
      for (const auto& [first, rows] : {std::pair{0, 4}, {4, 5}}) {
        const QuantizedWeight one = parts.select(expert);
        quantize_into(values[expert].narrow(0, first, rows),
                      {one.codes.narrow(0, first, rows), one.scales.narrow(0, first, rows), 70});
      }
    }
    EXPECT_TRUE(parts.codes.equal(whole.codes));
    EXPECT_TRUE(parts.scales.equal(whole.scales));
    EXPECT_EQ(dequantize(parts, at::kFloat).sizes(), values.sizes());
  }
}

TEST(QuantizedWeight, WhatWasQuantizedOnceStaysAsItIs) {
  const at::Tensor values = at::randn({20, 200});
  for (const QuantizedKind kind : {QuantizedKind::kInt8, QuantizedKind::kNf4}) {
    const at::Tensor once = dequantize(quantized(kind, values), at::kFloat);
    const at::Tensor twice = dequantize(quantized(kind, once), at::kFloat);
    EXPECT_LE((once - twice).abs().max().item<double>(), 1e-6);  // int8: a rounding of the scale
  }
}

}  // namespace
}  // namespace antisd::inline ops
