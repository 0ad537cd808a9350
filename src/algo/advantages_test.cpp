// A_i = (R_i - mean) / (std + 1e-6) within a group, with published values, and the summary of a
// step's rewards.
#include "algo/advantages.h"

#include <cmath>

#include <gmock/gmock.h>

#include "algo/reward_summary.h"
#include "core/testing.h"

namespace antisd::inline algo {
namespace {

using Rewards = std::vector<std::optional<double>>;

Advantages of(const Rewards& rewards, const AdvantageConfig& rules = {}) {
  return group_advantages(rewards, rules);
}

TEST(GroupAdvantages, HaveThePublishedValues) {
  const Advantages one_of_eight = of({1, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_NEAR(*one_of_eight[0], 2.474867, 1e-6);
  for (std::size_t i = 1; i < 8; ++i)
    EXPECT_NEAR(*one_of_eight[i], -.353552, 1e-6);
  const Advantages half = of({1, 1, 0, 0});
  EXPECT_NEAR(*half[0], .866024, 1e-6);
  EXPECT_NEAR(*half[3], -.866024, 1e-6);
}

// By a loop over the others, and by hand: 1 - 1/3 and 0 - 2/3 in a group of four with two right.
TEST(GroupAdvantages, LeaveOneOutComparesWithTheOthers) {
  const AdvantageConfig rloo{.baseline = "leave-one-out", .scale = "none"};
  const Rewards rewards = {.5, 1, std::nullopt, 0, .25};
  const Advantages found = of(rewards, rloo);
  for (std::size_t i = 0; i < rewards.size(); ++i) {
    if (!rewards[i]) continue;
    double others = 0;
    for (std::size_t j = 0; j < rewards.size(); ++j)
      if (j != i && rewards[j]) others += *rewards[j] / 3;
    EXPECT_NEAR(*found[i], *rewards[i] - others, 1e-12);
  }
  EXPECT_FALSE(found[2]);
  const Advantages half = of({1, 1, 0, 0}, rloo);
  EXPECT_NEAR(*half[0], 2.0 / 3, 1e-12);
  EXPECT_NEAR(*half[2], -2.0 / 3, 1e-12);
  EXPECT_EQ(*of({.3, .3}, rloo)[0], 0);
}

TEST(GroupAdvantages, WithoutAScaleAreTheDifferences) {
  const Advantages found = of({1, 0, 0, 0}, {.scale = "none"});
  EXPECT_NEAR(*found[0], .75, 1e-12);
  EXPECT_NEAR(*found[1], -.25, 1e-12);
}

// Rewards 1 0 | 1 1: the mean of all is .75 and their variance (3 x .0625 + .5625) / 3 = .25.
TEST(GroupAdvantages, TheScaleOfTheBatchIsItsDeviation) {
  ResponseBatch batch;
  for (const Rewards& rewards : {Rewards{1, 0}, Rewards{1, 1}}) {
    ResponseGroup& group = batch.groups.emplace_back();
    for (const auto& reward : rewards)
      group.responses.emplace_back().verdict.reward = reward;
  }
  set_advantages(batch, {.scale = "batch"});
  EXPECT_NEAR(*batch[0].group_advantage, .5 / (.5 + 1e-6), 1e-12);
  EXPECT_NEAR(*batch[1].group_advantage, -.5 / (.5 + 1e-6), 1e-12);
  EXPECT_EQ(*batch[2].group_advantage, 0);
  EXPECT_TRUE(has_signal(batch.groups[0]));
  EXPECT_FALSE(has_signal(batch.groups[1]));
  batch[2].shaped_reward = .5;  // counts instead of the grader's
  EXPECT_TRUE(has_signal(batch.groups[1]));
  set_advantages(batch, {.scale = "none"});
  EXPECT_NEAR(*batch[2].group_advantage, -.25, 1e-12);
}

TEST(GroupAdvantages, EqualRewardsGiveExactlyZero) {
  for (const double reward : {0.0, 1.0, 0.1, 1.0 / 3}) {
    for (const auto& advantage : of({reward, reward, reward}))
      EXPECT_EQ(*advantage, 0);
  }
}

TEST(GroupAdvantages, AFailedGradeLeavesTheStatistics) {
  const Advantages with = of({1, std::nullopt, 1, 0, 0});
  const Advantages without = of({1, 1, 0, 0});
  EXPECT_FALSE(with[1].has_value());
  EXPECT_EQ(with[0], without[0]);
  EXPECT_EQ(with[4], without[3]);
  EXPECT_EQ(of({std::nullopt, 1}), (Advantages{std::nullopt, 0}));
  EXPECT_EQ(of({std::nullopt, std::nullopt}), (Advantages{std::nullopt, std::nullopt}));
}

TEST(GroupAdvantages, AGroupOfOneIsRefused) {
  EXPECT_THAT(testing::error_of([] { of({1}); }), ::testing::HasSubstr("rollout.group_size"));
}

ResponseBatch batch_of(const std::vector<Rewards>& groups) {
  ResponseBatch batch;
  for (const Rewards& rewards : groups) {
    ResponseGroup& group = batch.groups.emplace_back();
    for (const auto& reward : rewards) {
      group.responses.emplace_back();
      group.responses.back().verdict.reward = reward;
    }
  }
  return batch;
}

TEST(GroupAdvantages, EveryGroupIsItsOwn) {
  ResponseBatch batch = batch_of({{1, 0, 0}, {0, 0, 0}, {.5, 1, 0}});
  set_advantages(batch);
  EXPECT_EQ(batch[0].group_advantage, of({1, 0, 0})[0]);
  EXPECT_EQ(batch[4].group_advantage, 0.0);
  EXPECT_EQ(batch[7].group_advantage, of({.5, 1, 0})[1]);
}

TEST(RewardSummary, LeavesTruncatedResponsesOut) {
  ResponseBatch batch = batch_of({{1, 0, 0}});
  batch[2].finish = FinishReason::kLength;
  EXPECT_EQ(summarise_rewards(batch).non_truncated, .5);
  EXPECT_NEAR(summarise_rewards(batch).mean, 1.0 / 3, 1e-12);
  for (std::size_t r = 0; r < 3; ++r)
    batch[r].finish = FinishReason::kLength;
  EXPECT_TRUE(std::isnan(summarise_rewards(batch).non_truncated));
}

TEST(RewardSummary, CountsGroupsAndFailures) {
  const RewardSummary summary = summarise_rewards(
      batch_of({{1, 1}, {0, 0}, {0, std::nullopt}, {1, 0}, {std::nullopt, std::nullopt}}));
  EXPECT_EQ(summary.all_right_fraction, .25);
  EXPECT_EQ(summary.all_wrong_fraction, .5);
  EXPECT_EQ(summary.grader_failed, 3);
  EXPECT_EQ(summary.max, 1);
  EXPECT_EQ(summary.min, 0);
  EXPECT_TRUE(std::isnan(summarise_rewards({}).mean));
  EXPECT_TRUE(std::isnan(summarise_rewards({}).max));
}

}  // namespace
}  // namespace antisd::inline algo
