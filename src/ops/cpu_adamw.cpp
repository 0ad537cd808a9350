// Compiled with -fno-math-errno: a square root that sets errno does not vectorise.
#include "ops/cpu_adamw.h"

#include "ops/simd.h"

namespace antisd::inline ops {

ANTISD_SIMD_CLONES void cpu_adamw(float* weight, const float* gradient, float* first, float* second,
                                  std::int64_t count, const AdamWFactors& factors) {
  const AdamWFactors f = factors;  // a copy, so that no store below aliases it
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const AdamWElement after = adamw_element(gradient[i], {weight[i], first[i], second[i]}, f);
    weight[i] = after.weight;
    first[i] = after.first;
    second[i] = after.second;
  }
}

ANTISD_SIMD_CLONES double cpu_sum_of_squares(const float* values, std::int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i)
    sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

ANTISD_SIMD_CLONES void cpu_widen(const std::uint16_t* bf16, std::int64_t count, float* values) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i)
    values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bf16[i]) << 16);
}

ANTISD_SIMD_CLONES void cpu_narrow(const float* values, std::int64_t count, std::uint16_t* bf16) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(values[i]);
    const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    bf16[i] = static_cast<std::uint16_t>(values[i] == values[i] ? rounded : 0x7fc0);
  }
}

}  // namespace antisd::inline ops
