#include "report/sweep/outcome.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing.h"
#include "eval/results/summary.h"
#include "io/atomic_file.h"
#include "report/sweep/outcome_words.h"

namespace antisd::inline report {
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
  EXPECT_NEAR(difference->mean, .1, 1e-12);  // .1 and .1 in any order; seed 2 has no pair
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
  EXPECT_THAT(words, HasSubstr("4.0 points above grpo. Its term"));
  EXPECT_THAT(words, HasSubstr("on in 8 of 20 steps; a gate closed 1 time."));
  EXPECT_THAT(words, HasSubstr("18.0 points below grpo."));
  EXPECT_THAT(words, HasSubstr("One run each"));
}

TEST(Outcome, TheWordsGoByTheDifferenceOfPairs) {
  // The seeds differ by .1 each, the methods by .02 to .03 within every seed.
  const ArmOutcome grpo{"grpo", {seed("0", {.1, .2}), seed("1", {.1, .3}), seed("2", {.1, .4})}};
  const ArmOutcome better{"better",
                          {seed("0", {.1, .22}), seed("1", {.1, .33}), seed("2", {.1, .425})}};
  const ArmOutcome other{"other", {seed("0", {.1, .3}), seed("1", {.1, .2}), seed("2", {.1, .41})}};
  const std::string words = outcome_words(std::vector{grpo, better, other}, "grpo");
  EXPECT_THAT(words,
              HasSubstr("2.5 points above grpo; the difference's 95 % interval is +1.3 to +3.7."));
  EXPECT_THAT(words, HasSubstr("which includes 0: this does not show that one is better"));
  EXPECT_THAT(words, Not(HasSubstr("One run each")));
}

// Rows of 20 problems, one sample each.
std::filesystem::path evaluation(const std::filesystem::path& folder, const std::string& verdicts) {
  std::vector<SampleRow> rows;
  std::string lines;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    rows.push_back({.id = std::to_string(i),
                    .problem = static_cast<std::int64_t>(i),
                    .response = "",
                    .correct = verdicts[i] == '1'});
    lines += to_json_line(to_json(rows.back())) + "\n";
  }
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / "x.jsonl", lines);
  EvalSummary summary;
  summary.benches.emplace_back("x", summarise_bench(rows, std::ssize(rows), 1));
  write_summary(folder / "summary.json", summary);
  return folder;
}

TEST(Outcome, OneSeedIsComparedProblemByProblem) {
  const testing::TemporaryFolder folder;
  ArmOutcome grpo{"grpo", {seed("0", {.1, .5})}}, antisd{"antisd", {seed("0", {.1, .9})}};
  EXPECT_FALSE(difference_by_seed(antisd, grpo)->interval);
  grpo.seeds[0].last_evaluation = evaluation(folder / "g", "00000000001111111111");
  antisd.seeds[0].last_evaluation = evaluation(folder / "a", "00111111111111111111");
  const std::optional<MeanOverSeeds> difference = difference_by_seed(antisd, grpo);
  ASSERT_TRUE(difference->interval);
  // 8 of 20 differences are 1: variance .4 x .6 x 20 / 19 / 20, and 1 / 40 of noise by 20.
  const double half = 2.093024 * std::sqrt(.24 / 19 + .5 / 400);
  EXPECT_NEAR(difference->interval->low, .4 - half, 1e-5);
  EXPECT_THAT(outcome_table(std::vector{grpo, antisd}, "grpo"), HasSubstr("+0.400 [+0.15"));
  antisd.seeds[0].last_evaluation = folder / "none";
  EXPECT_FALSE(difference_by_seed(antisd, grpo)->interval);
}

TEST(Outcome, ANarrowTerminalGetsALineAFigure) {
  const ArmOutcome grpo{"grpo", {seed("0", {.1, .3})}}, sd{"sd", {seed("0", {.1, .1})}};
  const std::string text = outcome_table(std::vector{grpo, sd}, "grpo", 40);
  EXPECT_EQ(text,
            "grpo\n  accuracy at the end: 0.300\n  steps to its best: 10\n  length: 40\n  term: -\n"
            "sd\n  accuracy at the end: 0.100\n  minus grpo: -0.200\n  steps to its best: never\n"
            "  length: 40\n  term: -\n");
  EXPECT_EQ(outcome_table(std::vector{grpo, sd}, "grpo", 200),
            outcome_table(std::vector{grpo, sd}, "grpo"));
}

}  // namespace
}  // namespace antisd::inline report
