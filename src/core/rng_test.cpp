#include "core/rng.h"

#include <cmath>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace antisd::inline core {
namespace {

// The known answers that the authors of Philox publish with Random123 for philox4x32, 10 rounds.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox_4x32_10({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(
      philox_4x32_10({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
      (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox_4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(CounterRng, EveryPartOfThePlaceMatters) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed : {0, 1, 2}) {
    for (RandomStream stream : {RandomStream::kSampling, RandomStream::kShuffle}) {
      const CounterRng rng(seed, stream);
      for (const RandomPlace& place :
           {RandomPlace{}, RandomPlace{.step = 1}, RandomPlace{.prompt = 1},
            RandomPlace{.sample = 1}, RandomPlace{.position = 1}}) {
        EXPECT_TRUE(seen.insert(rng.bits(place)).second);
        EXPECT_EQ(rng.bits(place), CounterRng(seed, stream).bits(place));
      }
    }
  }
}

TEST(CounterRng, UniformHasTheMomentsOfAUniform) {
  const CounterRng rng(7, RandomStream::kTask);
  constexpr std::uint32_t kDraws = 200'000;
  double sum = 0, squares = 0;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const double u = rng.uniform({.position = i});
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u, squares += u * u;
  }
  // Five standard errors: sqrt(1/12/n) = 6.5e-4 for the mean, sqrt(4/45/n) = 6.7e-4 for the square.
  EXPECT_NEAR(sum / kDraws, 0.5, 3.3e-3);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 3.4e-3);
}

TEST(CounterRng, BelowIsUniformOverSmallBounds) {
  const CounterRng rng(3, RandomStream::kPeer);
  std::vector<int> counts(7);
  constexpr std::uint32_t kDraws = 70'000;
  for (std::uint32_t i = 0; i < kDraws; ++i)
    ++counts[rng.below(7, {.prompt = i})];
  double chi_square = 0;
  for (const int count : counts)
    chi_square += std::pow(count - kDraws / 7.0, 2) / (kDraws / 7.0);
  EXPECT_LT(chi_square, 22.46);  // 6 degrees of freedom, p = 0.001
}

}  // namespace
}  // namespace antisd::inline core
