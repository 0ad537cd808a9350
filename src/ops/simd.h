// For loops over floats that the compiler turns into vector instructions of the machine it runs on.
//
//   ANTISD_SIMD_CLONES void scale(float* x, std::int64_t n, float by) {
//   #pragma omp simd
//     for (std::int64_t i = 0; i < n; ++i) x[i] *= by;
//   }
#pragma once

#include <bit>
#include <cstdint>

// One copy of the function for each generation of vectors, chosen when the program starts.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define ANTISD_SIMD_CLONES \
  __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define ANTISD_SIMD_CLONES
#endif

namespace antisd {

// e^x with a relative error below 2e-7, without branches, so that it vectorises. Underflows to 0
// below -87, saturates above 88; NaN stays NaN.
inline __attribute__((always_inline)) float simd_exp(float x) {
  const float clamped = x < -87.0f ? -87.0f : (x > 88.0f ? 88.0f : x);
  // x = n ln 2 + r, |r| <= ln(2) / 2; ln 2 in two parts keeps r exact.
  const float n = __builtin_floorf(clamped * 1.44269504f + 0.5f);
  const float r = (clamped - n * 0.693145752f) - n * 1.42860677e-6f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const float power = std::bit_cast<float>((static_cast<std::int32_t>(n) + 127) << 23);
  const float result = x < -87.0f ? 0.0f : p * power;
  return x == x ? result : x;
}

}  // namespace antisd
