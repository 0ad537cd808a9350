#include "sweep/outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antisd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

SeedOutcome seed(const std::string& name, std::vector<double> curve) {
  SeedOutcome outcome{.seed = name, .tokens = 40, .steps = 20};
  for (std::size_t i = 0; i < curve.size(); ++i)
    outcome.accuracy.push_back({static_cast<std::int64_t>(10 * i), curve[i]});
  return outcome;
}

TEST(Outcome, StudentsTOfTheTables) {
  EXPECT_NEAR(student_t(1), 12.706, 1e-3);
  EXPECT_NEAR(student_t(4), 2.776, 1e-3);
  EXPECT_NEAR(student_t(9), 2.262, 2e-3);
  EXPECT_NEAR(student_t(20), 2.086, 1e-3);
  EXPECT_NEAR(student_t(1000), 1.962, 1e-3);
}

TEST(Outcome, MeanAndIntervalByHand) {
  const std::vector<double> values = {1, 2, 3};  // deviation 1, standard error .57735
  const MeanOverSeeds mean = mean_over_seeds(values);
  EXPECT_DOUBLE_EQ(mean.mean, 2);
  ASSERT_TRUE(mean.interval);
  EXPECT_NEAR(mean.interval->high, 2 + 4.303 * .57735, 1e-3);
  EXPECT_FALSE(mean_over_seeds(std::vector<double>{4}).interval);
}

TEST(Outcome, DifferencesArePairedBySeed) {
  const ArmOutcome grpo{"grpo", {seed("0", {.1, .3}), seed("1", {.1, .5}), seed("2", {})}};
  const ArmOutcome other{"antisd", {seed("1", {.1, .6}), seed("0", {.1, .4}), seed("2", {.9})}};
  const auto difference = paired_difference(other, grpo);
  ASSERT_TRUE(difference);
  EXPECT_NEAR(difference->mean, .1, 1e-12);  // .1 and .1, whatever the order; seed 2 has no pair
  EXPECT_NEAR(difference->interval->low, .1, 1e-9);
  EXPECT_FALSE(paired_difference(other, ArmOutcome{"sd", {seed("7", {.1})}}));
}

TEST(Outcome, TheTableSaysWhatHappened) {
  ArmOutcome grpo{"grpo", {seed("0", {.1, .3, .25})}};
  grpo.seeds[0].last_over_problems = Interval{.2, .3};
  ArmOutcome antisd{"antisd", {seed("0", {.1, .3, .4})}};
  antisd.seeds[0].steps_open = 5;
  antisd.seeds[0].gate_closings = 2;
  const ArmOutcome sd{"sd", {seed("0", {.1, .1, .2})}};
  const std::string table = outcome_table(std::vector{grpo, antisd, sd}, "grpo");
  EXPECT_THAT(table, HasSubstr("0.250 [0.200, 0.300]"));
  EXPECT_THAT(table, HasSubstr("+0.150"));
  EXPECT_THAT(table, HasSubstr("never"));
  EXPECT_THAT(table, HasSubstr("on in 25 % of steps, closed 2x"));
  EXPECT_THAT(table, Not(HasSubstr("by seed")));
}

TEST(Outcome, RunsWithoutEvaluationsDoNotBreakIt) {
  const ArmOutcome bare{"grpo", {seed("0", {})}};
  EXPECT_THAT(outcome_table(std::vector{bare, bare}, "grpo"), HasSubstr("-"));
}

}  // namespace
}  // namespace antisd
