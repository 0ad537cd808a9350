#include "sweep/outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sweep/outcome_words.h"

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

TEST(Outcome, MeanAndIntervalByHand) {
  const std::vector<double> values = {1, 2, 3};  // deviation 1, standard error .57735
  const MeanOverSeeds mean = mean_over_seeds(values);
  EXPECT_DOUBLE_EQ(mean.mean, 2);
  ASSERT_TRUE(mean.interval);
  EXPECT_NEAR(mean.interval->high, 2 + 4.30265 * .57735, 1e-3);
  EXPECT_FALSE(mean_over_seeds(std::vector<double>{4}).interval);
}

TEST(Outcome, DifferencesArePairedBySeed) {
  const ArmOutcome grpo{"grpo", {seed("0", {.1, .3}), seed("1", {.1, .5}), seed("2", {})}};
  const ArmOutcome other{"antisd", {seed("1", {.1, .6}), seed("0", {.1, .4}), seed("2", {.9})}};
  const auto difference = difference_by_seed(other, grpo);
  ASSERT_TRUE(difference);
  EXPECT_NEAR(difference->mean, .1, 1e-12);  // .1 and .1, whatever the order; seed 2 has no pair
  EXPECT_NEAR(difference->interval->low, .1, 1e-9);
  EXPECT_FALSE(difference_by_seed(other, ArmOutcome{"sd", {seed("7", {.1})}}));
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

TEST(Outcome, TheWordsSayWhenNothingIsShown) {
  ArmOutcome grpo{"grpo", {seed("0", {.1, .3})}}, antisd{"antisd", {seed("0", {.1, .34})}},
      sd{"sd", {seed("0", {.1, .12})}};
  grpo.seeds[0].last_over_problems = Interval{.27, .33};
  antisd.seeds[0].last_over_problems = Interval{.31, .37};
  sd.seeds[0].last_over_problems = Interval{.1, .14};
  antisd.seeds[0].steps_open = 8;
  antisd.seeds[0].gate_closings = 1;
  const std::string words = outcome_words(std::vector{sd, antisd, grpo}, "grpo");
  EXPECT_EQ(words.find("grpo: solved 10.0 % of the held-out problems before training and 30.0 %"),
            0u);
  EXPECT_THAT(words, HasSubstr("4.0 points above grpo; the intervals overlap"));
  EXPECT_THAT(words, HasSubstr("on in 8 of 20 steps; a gate closed 1 time."));
  EXPECT_THAT(words, HasSubstr("18.0 points below grpo."));
}

}  // namespace
}  // namespace antisd
