#include "core/rng.h"

#include "core/check.h"

namespace antisd::inline core {
namespace {

// Multipliers and Weyl increments of Philox 4x32.
constexpr std::uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

// A bijection of 64 bits (the finaliser of SplitMix64): keys of one seed's streams, and of
// neighbouring seeds, share no pattern.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

PhiloxBlock philox_4x32_10(PhiloxBlock counter, PhiloxKey key) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

CounterRng::CounterRng(std::uint64_t seed, RandomStream stream) {
  const std::uint64_t mixed = mix(mix(seed) + static_cast<std::uint64_t>(stream));
  key_ = {static_cast<std::uint32_t>(mixed), static_cast<std::uint32_t>(mixed >> 32)};
}

PhiloxBlock CounterRng::block(const RandomPlace& place) const {
  return philox_4x32_10(counter_of(place), key_);
}

std::uint64_t CounterRng::bits(const RandomPlace& place) const {
  const PhiloxBlock words = block(place);
  return std::uint64_t{words[1]} << 32 | words[0];
}

double CounterRng::uniform(const RandomPlace& place) const {
  return static_cast<double>(bits(place) >> 11) * 0x1p-53;
}

std::uint64_t CounterRng::below(std::uint64_t bound, const RandomPlace& place) const {
  ANTISD_CHECK_LT(0u, bound);
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(bits(place)) * bound >> 64);
}

}  // namespace antisd::inline core
