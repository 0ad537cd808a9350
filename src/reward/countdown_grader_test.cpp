#include "reward/countdown_grader.h"

#include <gtest/gtest.h>

#include "core/testing.h"

namespace antisd::inline reward {
namespace {

const CountdownProblem kProblem{{4, 11, 3, 6}, 29};

bool correct(std::string_view response, const CountdownOptions& options = {}) {
  return grade_countdown(kProblem, response, options).correct();
}

std::string reason(std::string_view response) {
  return grade_countdown(kProblem, response).reason;
}

TEST(Countdown, ReadsProblems) {
  const CountdownProblem text = parse_countdown_problem("Numbers 4 11 3 6 target 29");
  EXPECT_EQ(text.numbers, kProblem.numbers);
  EXPECT_EQ(text.target, 29);
  const CountdownProblem row =
      read_countdown_problem(Json::parse(R"({"numbers":[4,11,3,6],"target":29})"));
  EXPECT_EQ(row.numbers, kProblem.numbers);
  EXPECT_EQ(row.target, 29);
  EXPECT_EQ(read_countdown_problem(Json("Numbers 2 3 target 6 |")).target, 6);
  EXPECT_NE(testing::error_of([] { parse_countdown_problem("Numbers 4 11"); }), "");
  EXPECT_NE(testing::error_of([] { parse_countdown_problem("Numbers target 5"); }), "");
  EXPECT_NE(testing::error_of(
                [] { read_countdown_problem(Json::parse(R"({"numbers":["4"],"target":29})")); }),
            "");
  EXPECT_NE(testing::error_of([] { read_countdown_problem(Json::parse("[1]")); }), "");
}

TEST(Countdown, TheLastCompleteChainBeforeTheBoxCounts) {
  EXPECT_TRUE(
      correct("Let 4 + 11 = 15 ; 15 * 3 = 45 ; 45 - 6 = 39 no Wait "
              "Let 6 - 3 = 3 ; 3 * 11 = 33 ; 33 - 4 = 29 holds So boxed 29"));
  // The right chain first, a wrong one last.
  EXPECT_FALSE(
      correct("Let 6 - 3 = 3 ; 3 * 11 = 33 ; 33 - 4 = 29 holds Wait "
              "Let 4 + 11 = 15 ; 15 * 3 = 45 ; 45 - 6 = 39 no So boxed 29"));
  // An incomplete chain does not count.
  EXPECT_TRUE(
      correct("Let 6 - 3 = 3 ; 3 * 11 = 33 ; 33 - 4 = 29 holds Wait Let 4 + 11 So boxed 29"));
  // Neither does one after the box.
  EXPECT_FALSE(correct("boxed 29 Let 6 - 3 = 3 ; 3 * 11 = 33 ; 33 - 4 = 29 holds"));
  EXPECT_TRUE(correct("Let 6 - 3 = 3 ; 3 * 11 = 33 ; 33 - 4 = 29 holds So \\boxed{29}"));
  EXPECT_TRUE(correct(
      "Let 6 - 3 = 3 ; 3 * 11 = 33 ; 33 - 4 = 29 holds So boxed 29 Wait Let 4 + 11 = 15 no"));
}

TEST(Countdown, EveryRuleIsChecked) {
  EXPECT_EQ(reason("Let 6 - 3 = 3 ; 3 * 11 = 33 ; 33 - 4 = 29 holds"), "no answer found");
  EXPECT_EQ(reason("So boxed 29"), "no complete chain before the box");
  EXPECT_EQ(reason("Let 6 - 3 = 3 ; 3 * 11 = 33 ; 33 - 4 = 29 holds So boxed 28"),
            "the box does not hold the target");
  EXPECT_EQ(reason("Let 6 - 3 = 4 ; 4 * 11 = 33 ; 33 - 4 = 29 holds So boxed 29"),
            "a step is wrong");
  EXPECT_EQ(reason("Let 6 - 3 = 3 ; 3 * 11 = 33 ; 33 - 5 = 28 So boxed 29"),
            "a step uses a number that is not available");
  EXPECT_EQ(reason("Let 11 + 11 = 22 ; 22 + 6 = 28 So boxed 29"),
            "a step uses a number that is not available");
  EXPECT_EQ(reason("Let 4 + 11 = 15 ; 15 * 3 = 45 ; 45 - 6 = 39 So boxed 29"),
            "the chain misses the target");
  EXPECT_EQ(grade_countdown({{4, 11, 3, 7, 18}, 29}, "Let 11 + 18 = 29 holds So boxed 29").reason,
            "a number is left over");
  // A negative intermediate result, and one above 400.
  EXPECT_EQ(grade_countdown({{3, 6, 32}, 29}, "Let 3 - 6 = -3 ; 32 - 3 = 29 So boxed 29").reward,
            0.0);
  EXPECT_EQ(
      grade_countdown({{30, 20, 571}, 29}, "Let 30 * 20 = 600 ; 600 - 571 = 29 So boxed 29").reason,
      "a step is wrong");
  // 3 occurs as a result and as a given number, but only once each.
  EXPECT_EQ(grade_countdown({{6, 3}, 9}, "Let 6 - 3 = 3 ; 3 + 3 = 6 ; 6 + 3 = 9 So boxed 9").reason,
            "a step uses a number that is not available");
}

TEST(Countdown, AtMostOnceAllowsLeftOvers) {
  const CountdownProblem problem{{4, 11, 3, 7, 18}, 29};
  EXPECT_EQ(
      grade_countdown(problem, "Let 11 + 18 = 29 holds So boxed 29", {.at_most_once = true}).reward,
      1.0);
  EXPECT_EQ(grade_countdown(problem, "Let 11 + 18 = 29 ; 29 + 11 = 40 ; 40 - 11 = 29 So boxed 29",
                            {.at_most_once = true})
                .reward,
            0.0);
  EXPECT_EQ(grade_countdown(problem, "boxed 11 + 18", {.at_most_once = true}).reward, 1.0);
  EXPECT_EQ(grade_countdown(problem, "boxed 11 + 18").reward, 0.0);
}

TEST(Countdown, AnExpressionInTheBoxCounts) {
  EXPECT_TRUE(correct("boxed ( 6 - 3 ) * 11 - 4"));
  EXPECT_TRUE(correct("So \\boxed{(6-3)*11-4}"));
  EXPECT_TRUE(correct("So $\\boxed{(6-3) \\times 11 - 4 = 29}$."));
  EXPECT_FALSE(correct("\\boxed{(6-3)*11-4 = 30}"));
  EXPECT_FALSE(correct("\\boxed{6-3*11-4}"));
  EXPECT_FALSE(correct("\\boxed{29+0}"));
  EXPECT_FALSE(correct("\\boxed{(6-3)*11-4-0}"));
  EXPECT_FALSE(
      correct("\\boxed{(6-3)*11-4"
              "+(}"));
  EXPECT_FALSE(correct("\\boxed{11+11+3+4}"));
}

TEST(Countdown, HostileTextIsWrongOrRightButEnds) {
  std::string nested = "\\boxed{";
  for (int k = 0; k < 100'000; ++k)
    nested += "(";
  EXPECT_FALSE(correct(nested));
  std::string lets;
  for (int k = 0; k < 100'000; ++k)
    lets += "Let 4 + ";
  EXPECT_FALSE(correct(lets + " boxed 29"));
  EXPECT_FALSE(correct("Let 99999999999999999999 + 1 = 29 So boxed 29"));
  EXPECT_FALSE(correct("<think> Let 6 - 3 = 3 ; 3 * 11 = 33 ; 33 - 4 = 29 holds So boxed 29"));
  EXPECT_FALSE(correct(std::string("\\boxed{\xff\0}", 11)));
}

}  // namespace
}  // namespace antisd::inline reward
