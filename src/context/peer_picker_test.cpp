// Which correct rollout a teacher is shown: never the rollout itself, drawn by (seed, step, prompt,
// rollout).
#include "context/peer_picker.h"

#include <map>

#include <gmock/gmock.h>

namespace antisd::inline context {
namespace {

std::vector<bool> correct(std::initializer_list<std::size_t> which, std::size_t group_size = 8) {
  std::vector<bool> flags(group_size, false);
  for (const std::size_t i : which)
    flags[i] = true;
  return flags;
}

TEST(PeerPicker, OfTwoCorrectOnesEachTakesTheOther) {
  const PeerPicker picker(7, PeerMode::kRollout);
  std::map<std::size_t, int> taken;
  for (std::uint32_t step = 0; step < 500; ++step) {
    EXPECT_EQ(picker.pick(step, 3, correct({2, 5}), 2), 5u);
    EXPECT_EQ(picker.pick(step, 3, correct({2, 5}), 5), 2u);
    for (const std::size_t i : {0, 1, 3, 4, 6, 7})
      ++taken[*picker.pick(step, 3, correct({2, 5}), i)];
  }
  // 3,000 fair draws: 5 standard deviations are 137.
  EXPECT_EQ(taken.size(), 2u);
  EXPECT_NEAR(taken[2], 1500, 137);
  EXPECT_NEAR(taken[5], 1500, 137);
}

TEST(PeerPicker, TheOnlyCorrectOneHasNoPeer) {
  for (const PeerMode mode : {PeerMode::kRollout, PeerMode::kGroup}) {
    const PeerPicker picker(7, mode);
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(picker.pick(0, 0, correct({2}), i),
                i == 2 ? std::nullopt : std::optional<std::size_t>(2));
      EXPECT_EQ(picker.pick(0, 0, correct({}), i), std::nullopt);
    }
  }
}

TEST(PeerPicker, EveryRolloutDrawsForItself) {
  const PeerPicker picker(7, PeerMode::kRollout);
  std::map<std::size_t, int> taken;
  for (std::uint32_t prompt = 0; prompt < 400; ++prompt) {
    for (std::size_t i = 0; i < 8; ++i)
      ++taken[*picker.pick(1, prompt, correct({0, 1, 2, 3, 4, 5, 6, 7}), i)];
  }
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_NEAR(taken[i], 400, 100) << i;  // 5 standard deviations
}

TEST(PeerPicker, AGroupSharesOneAndTheOneTakesAnother) {
  const PeerPicker picker(7, PeerMode::kGroup);
  std::map<std::size_t, int> first_taken;
  for (std::uint32_t step = 0; step < 300; ++step) {
    const std::vector<bool> flags = correct({1, 4, 6});
    const std::size_t shared = *picker.pick(step, 0, flags, 0);
    ++first_taken[shared];
    for (std::size_t i = 0; i < 8; ++i) {
      const std::size_t peer = *picker.pick(step, 0, flags, i);
      EXPECT_NE(peer, i);
      EXPECT_TRUE(flags[peer]);
      EXPECT_TRUE(i == shared || peer == shared);
    }
  }
  EXPECT_EQ(first_taken.size(), 3u);
}

TEST(PeerPicker, TheDrawDependsOnSeedStepPromptAndRollout) {
  const std::vector<bool> all(64, true);
  const PeerPicker picker(7, PeerMode::kRollout);
  const auto base = picker.pick(1, 2, all, 3);
  EXPECT_EQ(PeerPicker(7, PeerMode::kRollout).pick(1, 2, all, 3), base);
  EXPECT_NE(PeerPicker(8, PeerMode::kRollout).pick(1, 2, all, 3), base);
  EXPECT_NE(picker.pick(2, 2, all, 3), base);
  EXPECT_NE(picker.pick(1, 3, all, 3), base);
  EXPECT_NE(picker.pick(1, 2, all, 4), base);
}

}  // namespace
}  // namespace antisd::inline context
