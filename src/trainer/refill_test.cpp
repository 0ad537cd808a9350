// Dynamic sampling (rollout.refill), and what [reward] and [loss] leave out or subtract.
#include <cmath>
#include <set>

#include <gmock/gmock.h>

#include "trainer/ranks_testing.h"
#include "trainer/testing.h"

namespace antisd::inline trainer {
namespace {

using testing::expect_same;
using ::testing::SizeIs;
using testing::SmallTraining;
using testing::train_alone;
using testing::train_on;

constexpr std::size_t kGroup = 4;

// Ids and rewards of one group of a dump, in order.
using Seen = std::vector<std::pair<Json, Json>>;

std::vector<Seen> groups_of_first_step(const std::vector<std::string>& settings) {
  SmallTraining training(settings);
  EXPECT_TRUE(training.run());
  std::vector<Seen> groups;
  for (const Json& row : training.rows("rollouts/step-000001.jsonl")) {
    if (row["sample"] == 0) groups.emplace_back();
    groups.back().emplace_back(row["response_ids"], row["reward"]);
  }
  return groups;
}

bool differs(const Seen& group) {
  std::set<double> rewards;
  for (const auto& [ids, reward] : group)
    rewards.insert(reward.get<double>());
  return rewards.size() > 1;
}

// A response depends on its prompt's place in the step alone. So the groups of a step that draws
// many prompts at once are those that a refilled step may draw, and the rule can be repeated here.
TEST(Refill, TakesTheNextGroupsThatHaveASignal) {
  std::size_t replaced = 0;
  for (int seed = 0; seed < 6; ++seed) {
    const std::vector<std::string> one_step = {"train.steps=1", "method.name=grpo",
                                               fmt::format("train.seed={}", seed)};
    const std::vector<Seen> all =
        groups_of_first_step(testing::with(one_step, {"rollout.prompts_per_step=12"}));
    ASSERT_THAT(all, SizeIs(12));
    std::vector<Seen> expected(all.begin(), all.begin() + 3);
    std::size_t drawn = 3;
    for (int round = 0; round < 2; ++round) {
      std::vector<std::size_t> dull;
      for (std::size_t p = 0; p < 3; ++p)
        if (!differs(expected[p])) dull.push_back(p);
      std::size_t next = 0;
      for (std::size_t k = 0; k < dull.size(); ++k, ++drawn) {
        if (!differs(all[drawn])) continue;
        expected[dull[next++]] = all[drawn];
        ++replaced;
      }
    }
    EXPECT_EQ(groups_of_first_step(testing::with(one_step, {"rollout.refill=2"})), expected);
  }
  EXPECT_GT(replaced, 2u) << "other seeds are needed to see anything";
}

TEST(Refill, CountsWhatItReplacedAndDropped) {
  SmallTraining training({"train.steps=1", "rollout.refill=9"});
  ASSERT_TRUE(training.run());
  const Json row = training.rows("metrics.jsonl")[0];
  EXPECT_GE(row["rollout/refill_rounds"], 1);
  EXPECT_LE(row["rollout/refill_rounds"], 9);
  EXPECT_GE(row["rollout/refilled_groups"], 1);
  EXPECT_GT(row["rollout/discarded_tokens"], 0);
  SmallTraining off({"train.steps=1"});
  ASSERT_TRUE(off.run());
  EXPECT_FALSE(off.rows("metrics.jsonl")[0].contains("rollout/refill_rounds"));
}

// A grader that never gives a signal: the rounds are bounded, and the step goes on.
TEST(Refill, EndsWhereNothingHasASignal) {
  class Never : public Grader {
   public:
    Verdict grade(const GradeRequest&) override { return {0.0, ""}; }
  } never;
  SmallTraining training({"train.steps=2", "rollout.refill=3"});
  EXPECT_TRUE(training.run_with(never, {1}));
  const std::vector<Json> rows = training.rows("metrics.jsonl");
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[1]["rollout/refill_rounds"], 3);
  EXPECT_EQ(rows[1]["rollout/refilled_groups"], 0);
}

TEST(Refill, IsTheSameOnSeveralRanks) {
  const std::vector<std::string> settings = {"train.steps=3", "rollout.refill=2",
                                             "train.micro_batches=3"};
  const auto expected = train_alone(settings);
  expect_same(train_on(3, settings), expected);
  expect_same(train_on(2, settings), expected);
}

TEST(OverlongFilter, LeavesTruncatedResponsesOutOfTheLossAlone) {
  SmallTraining training({"train.steps=2", "loss.overlong_filter=true"});
  ASSERT_TRUE(training.run());
  int left_out = 0, learnt = 0;
  for (const Json& row : training.rows("rollouts/step-000001.jsonl")) {
    EXPECT_FALSE(row["group_advantage"].is_null());
    EXPECT_EQ(row["token_advantage"].is_null(), row["truncated"].get<bool>());
    ++(row["truncated"].get<bool>() ? left_out : learnt);
  }
  EXPECT_GT(left_out, 0);
  EXPECT_GT(learnt, 0);
}

// The advantage follows the shaped rewards, which the dump shows; with the weights of the reference
// itself the divergence is 0.
TEST(ShapedReward, IsWhatTheAdvantageSees) {
  SmallTraining training({"train.steps=3", "reward.kl_coef=0.5", "reward.overlong_tokens=8",
                          "method.name=grpo", "advantage.scale=none"});
  ASSERT_TRUE(training.run());
  bool diverged = false;
  for (int step = 1; step <= 3; ++step) {
    const std::vector<Json> rows = training.rows(fmt::format("rollouts/step-{:06}.jsonl", step));
    for (std::size_t first = 0; first < rows.size(); first += kGroup) {
      double mean = 0;
      for (std::size_t i = first; i < first + kGroup; ++i)
        mean += rows[i]["shaped_reward"].get<double>() / kGroup;
      for (std::size_t i = first; i < first + kGroup; ++i) {
        const auto tokens =
            static_cast<double>(rows[i]["prompt_ids"].size() + rows[i]["response_ids"].size());
        const double shaped = rows[i]["shaped_reward"].get<double>();
        const double without_kl =
            rows[i]["reward"].get<double>() - std::max(0.0, tokens - (24 - 8)) / 8;
        EXPECT_NEAR(rows[i]["group_advantage"].get<double>(), shaped - mean, 1e-9);
        EXPECT_LE(shaped, without_kl + 1e-12);  // k3 is not negative
        if (step == 1) {
          EXPECT_NEAR(shaped, without_kl, 1e-9);
        }
        diverged = diverged || shaped < without_kl - 1e-6;
      }
    }
  }
  EXPECT_TRUE(diverged);
}

}  // namespace
}  // namespace antisd::inline trainer
