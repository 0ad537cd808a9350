// SHA-256 (FIPS 180-4), for tests that compare with digests of texts that must not be stored.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace antisd::testing {

inline std::string sha256(std::string message) {
  // The constants are the first 32 bits of the fractional parts of roots of the first primes.
  std::array<std::uint32_t, 64> k{};
  std::array<std::uint32_t, 8> hash{};
  const auto fraction = [](long double root) {
    return static_cast<std::uint32_t>((root - std::floor(root)) * 4294967296.0L);
  };
  for (int prime = 2, count = 0; count < 64; ++prime) {
    bool composite = false;
    for (int d = 2; d * d <= prime; ++d)
      composite |= prime % d == 0;
    if (composite) continue;
    k[count] = fraction(std::cbrt(static_cast<long double>(prime)));
    if (count < 8) hash[count] = fraction(std::sqrt(static_cast<long double>(prime)));
    ++count;
  }
  const std::uint64_t bits = message.size() * 8;
  message += '\x80';
  while (message.size() % 64 != 56)
    message += '\0';
  for (int i = 7; i >= 0; --i)
    message += static_cast<char>(bits >> (8 * i));
  for (std::size_t block = 0; block < message.size(); block += 64) {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t i = 0; i < 64; ++i) {
      w[i / 4] = i / 4 < 16 ? w[i / 4] << 8 | static_cast<unsigned char>(message[block + i]) : 0;
    }
    for (std::size_t i = 16; i < 64; ++i) {
      const auto s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
      const auto s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = hash;
    for (std::size_t i = 0; i < 64; ++i) {
      const auto s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const auto t1 = h + s1 + ((e & f) ^ (~e & g)) + k[i] + w[i];
      const auto s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const auto t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::array<std::uint32_t, 8> step = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; ++i)
      hash[i] += step[i];
  }
  std::string text;
  for (const std::uint32_t word : hash)
    text += fmt::format("{:08x}", word);
  return text;
}

}  // namespace antisd::testing
