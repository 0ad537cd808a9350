// The CPU half of ops/adamw.h and ops/squared_norms.h: vectorised loops over a few thousand
// elements. bf16 is passed as its 16 bits.
#pragma once

#include <cstdint>

#include "ops/kernels/formulas.cuh"

namespace antisd::inline ops {

void cpu_adamw(float* weight, const float* gradient, float* first, float* second,
               std::int64_t count, const AdamWFactors& factors);

// In double, in an order that depends only on `count`.
double cpu_sum_of_squares(const float* values, std::int64_t count);

void cpu_widen(const std::uint16_t* bf16, std::int64_t count, float* values);
// Rounds to nearest, ties to even; NaN stays NaN.
void cpu_narrow(const float* values, std::int64_t count, std::uint16_t* bf16);

}  // namespace antisd::inline ops
