// For loops over floats that the compiler turns into vector instructions of the machine it runs on.
//
//   ANTISD_SIMD_CLONES void scale(float* x, std::int64_t n, float by) {
//   #pragma omp simd
//     for (std::int64_t i = 0; i < n; ++i) x[i] *= by;
//   }
#pragma once

#include <bit>
#include <cstdint>

// Compiles the function once per generation of vector instructions; the program selects one at
// start by the processor's features. A name like arch=haswell would match only Intel's processors.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define ANTISD_SIMD_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define ANTISD_SIMD_CLONES
#endif

namespace antisd::inline ops {

// condition ? a : b on bits. The compiler may not evaluate both sides of a float choice, since one
// might trap, and then does not vectorise the loop.
inline __attribute__((always_inline)) float simd_choose(bool condition, float a, float b) {
  const std::uint32_t mask = -static_cast<std::uint32_t>(condition);
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(a) & mask) |
                              (std::bit_cast<std::uint32_t>(b) & ~mask));
}

// e^x with a relative error below 2e-7, without branches, so that it vectorises. Underflows to 0
// below -87, saturates above 88; NaN stays NaN.
inline __attribute__((always_inline)) float simd_exp(float x) {
  const float clamped = simd_choose(x < 88.0f, simd_choose(x > -87.0f, x, -87.0f), 88.0f);
  // x = n ln 2 + r, |r| <= ln(2) / 2; ln 2 in two parts keeps r exact. Adding and subtracting 1.5 *
  // 2^23 rounds, and leaves n in the low bits.
  const float shifted = clamped * 1.44269504f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  const float r = (clamped - n * 0.693145752f) - n * 1.42860677e-6f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const std::uint32_t power = (std::bit_cast<std::uint32_t>(shifted) - 0x4b400000u + 127u) << 23;
  const float result = p * std::bit_cast<float>(power);
  return simd_choose(x < -87.0f, 0.0f, simd_choose(x == x, result, x));
}

}  // namespace antisd::inline ops
