// The number formats of quantised weights, one element at a time, for kernels and the CPU.
//
// int8: one scale per row of the matrix, the row's largest magnitude / 127; codes -127 to 127.
// nf4:  blocks of 64 elements of a row; a code is one of 16 levels between -1 and 1, times the
//       block's largest magnitude. The levels are those of QLoRA (Dettmers et al. 2023, appendix
//       E): quantiles of a normal distribution, with an exact 0. Two codes are a byte, the first in
//       its lower half.
#pragma once

#include "ops/kernels/formulas.cuh"

namespace antisd::inline ops {

enum class QuantizedKind { kInt8, kNf4 };

inline constexpr int kNf4Block = 64;
inline constexpr int kNf4Levels = 16;
inline constexpr int kNf4Zero = 7;  // the code of 0

// ---- the largest magnitude of elements ----

// NaN stays NaN, so that a scale is finite only if all elements are.
ANTISD_FORMULA float larger_magnitude(float largest, float element) {
  const float magnitude = fabsf(element);
  return magnitude > largest || magnitude != magnitude ? magnitude : largest;
}

// ---- int8 ----

ANTISD_FORMULA float int8_scale(float largest) {
  return largest / 127.0f;
}

ANTISD_FORMULA int int8_code(float element, float scale) {
  if (!(scale > 0.0f)) return 0;  // a row of zeros, or of numbers too small to divide
  const float code = rintf(element / scale);
  return static_cast<int>(fminf(fmaxf(code, -127.0f), 127.0f));
}

ANTISD_FORMULA float int8_value(int code, float scale) {
  return rounded_product(static_cast<float>(code), scale);
}

// ---- nf4 ----

ANTISD_FORMULA float nf4_level(int code) {
  const float levels[kNf4Levels] = {-1.0f,
                                    -0.6961928009986877f,
                                    -0.5250730514526367f,
                                    -0.39491748809814453f,
                                    -0.28444138169288635f,
                                    -0.18477343022823334f,
                                    -0.09105003625154495f,
                                    0.0f,
                                    0.07958029955625534f,
                                    0.16093020141124725f,
                                    0.24611230194568634f,
                                    0.33791524171829224f,
                                    0.44070982933044434f,
                                    0.5626170039176941f,
                                    0.7229568362236023f,
                                    1.0f};
  return levels[code];
}

// The nearest level: the number of midpoints between levels that are below the element.
ANTISD_FORMULA int nf4_code(float element, float largest) {
  if (!(largest > 0.0f)) return kNf4Zero;
  const float place = element / largest;
  int code = 0;
  for (int i = 0; i + 1 < kNf4Levels; ++i)
    code += place > 0.5f * (nf4_level(i) + nf4_level(i + 1)) ? 1 : 0;
  return code;
}

ANTISD_FORMULA float nf4_value(float level, float largest) {
  return rounded_product(level, largest);
}

}  // namespace antisd::inline ops
