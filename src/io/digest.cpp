#include "io/digest.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

namespace antisd::inline io {
namespace {

std::uint32_t big_endian(const std::byte* bytes) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i)
    word = word << 8 | static_cast<std::uint32_t>(bytes[i]);
  return word;
}

// The first 32 bits of the fraction of a root of a prime: FIPS 180-4 defines SHA-256's constants
// so. An 80-bit long double holds them exactly enough: 3 bits before the point, 32 behind it.
std::uint32_t fraction_bits(long double root) {
  return static_cast<std::uint32_t>(std::floor((root - std::floor(root)) * 0x1p32L));
}

template <std::size_t kCount, typename Root>
std::array<std::uint32_t, kCount> fractions_of_prime_roots(Root root) {
  std::array<std::uint32_t, kCount> words{};
  std::size_t found = 0;
  for (int n = 2; found < kCount; ++n) {
    bool prime = true;
    for (int d = 2; d * d <= n; ++d)
      prime &= n % d != 0;
    if (prime) words[found++] = fraction_bits(root(static_cast<long double>(n)));
  }
  return words;
}

const std::array<std::uint32_t, 64>& round_constants() {
  static const auto words =
      fractions_of_prime_roots<64>([](long double n) { return std::cbrt(n); });
  return words;
}

}  // namespace

template <>
std::array<std::uint32_t, 5> BlockDigest<5>::initial() {
  return {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
}

template <>
std::array<std::uint32_t, 8> BlockDigest<8>::initial() {
  static const auto words = fractions_of_prime_roots<8>([](long double n) { return std::sqrt(n); });
  return words;
}

template <>
void BlockDigest<5>::mix(const std::byte* block) {
  std::array<std::uint32_t, 80> w;
  for (std::size_t t = 0; t < 16; ++t)
    w[t] = big_endian(block + 4 * t);
  for (std::size_t t = 16; t < 80; ++t)
    w[t] = std::rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
  auto [a, b, c, d, e] = state_;
  for (std::size_t t = 0; t < 80; ++t) {
    std::uint32_t f = b ^ c ^ d, k = 0xca62c1d6;
    if (t < 20) {
      f = (b & c) | (~b & d);
      k = 0x5a827999;
    } else if (t < 40) {
      k = 0x6ed9eba1;
    } else if (t < 60) {
      f = (b & c) | (b & d) | (c & d);
      k = 0x8f1bbcdc;
    }
    const std::uint32_t next = std::rotl(a, 5) + f + e + k + w[t];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  const std::array<std::uint32_t, 5> added = {a, b, c, d, e};
  for (std::size_t i = 0; i < 5; ++i)
    state_[i] += added[i];
}

template <>
void BlockDigest<8>::mix(const std::byte* block) {
  const std::array<std::uint32_t, 64>& constants = round_constants();
  std::array<std::uint32_t, 64> w;
  for (std::size_t t = 0; t < 16; ++t)
    w[t] = big_endian(block + 4 * t);
  for (std::size_t t = 16; t < 64; ++t) {
    const std::uint32_t low = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
    const std::uint32_t high = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ w[t - 2] >> 10;
    w[t] = w[t - 16] + low + w[t - 7] + high;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t t = 0; t < 64; ++t) {
    const std::uint32_t one = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                              ((e & f) ^ (~e & g)) + constants[t] + w[t];
    const std::uint32_t two =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + one;
    d = c;
    c = b;
    b = a;
    a = one + two;
  }
  const std::array<std::uint32_t, 8> added = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i)
    state_[i] += added[i];
}

template <std::size_t kWords>
void BlockDigest<kWords>::add(std::span<const std::byte> bytes) {
  size_ += bytes.size();
  while (!bytes.empty()) {
    if (rest_size_ == 0 && bytes.size() >= kBlock) {
      mix(bytes.data());
      bytes = bytes.subspan(kBlock);
      continue;
    }
    const std::size_t taken = std::min(kBlock - rest_size_, bytes.size());
    std::copy_n(bytes.begin(), taken, rest_.begin() + static_cast<std::ptrdiff_t>(rest_size_));
    rest_size_ += taken;
    bytes = bytes.subspan(taken);
    if (rest_size_ < kBlock) return;
    mix(rest_.data());
    rest_size_ = 0;
  }
}

// A one bit, zeros, and the length in bits fill the last block.
template <std::size_t kWords>
std::string BlockDigest<kWords>::hex() const {
  BlockDigest padded = *this;
  const std::uint64_t bits = size_ * 8;
  std::array<std::byte, kBlock + 8> ending{std::byte{0x80}};
  const std::size_t zeros = (kBlock + 56 - (rest_size_ + 1)) % kBlock;
  for (int i = 0; i < 8; ++i)
    ending[1 + zeros + static_cast<std::size_t>(i)] = static_cast<std::byte>(bits >> (56 - 8 * i));
  padded.add(std::span(ending).first(1 + zeros + 8));
  std::string text;
  for (const std::uint32_t word : padded.state_)
    text += fmt::format("{:08x}", word);
  return text;
}

template class BlockDigest<5>;
template class BlockDigest<8>;

}  // namespace antisd::inline io
