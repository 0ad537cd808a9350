#include "eval/graded_rows.h"

#include <cmath>

#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd::inline eval {
namespace {

using ::testing::HasSubstr;

TEST(GradedRows, GiveEverySampleItsVerdict) {
  Problem problem;
  problem.id = "p";
  std::vector<Response> responses(4);
  responses[0].text = "four";
  responses[0].ids = {7, 8, 9};
  responses[3].finish = FinishReason::kLength;
  GradedGroup graded{
      .group = 5,
      .verdicts = {right_verdict("4"), Verdict{.reward = 0.5, .reason = "half"},
                   Verdict{.reward = {}, .reason = "out of time"}, truncated_verdict()}};
  const std::vector<SampleRow> rows = graded_rows(problem, graded, responses);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0], (SampleRow{.id = "p",
                                .problem = 5,
                                .sample = 0,
                                .response = "four",
                                .extracted = "4",
                                .correct = true,
                                .reason = "",
                                .truncated = false,
                                .tokens = 3,
                                .settings = ""}));
  EXPECT_EQ(rows[1].correct, false);  // half a reward is not correct
  EXPECT_EQ(rows[1].sample, 1);
  EXPECT_EQ(rows[2].correct, std::nullopt);
  EXPECT_EQ(rows[2].reason, "out of time");
  EXPECT_EQ(rows[3].correct, false);
  EXPECT_EQ(rows[3].reason, "truncated");
  EXPECT_TRUE(rows[3].truncated);

  graded.verdicts[1].right = true;  // as reward.correct_at decides
  graded.verdicts[2].reward = 2;    // more than 1 is correct too
  EXPECT_EQ(graded_rows(problem, graded, responses)[1].correct, true);
  EXPECT_EQ(graded_rows(problem, graded, responses)[2].correct, true);
  graded.verdicts[2].reward = HUGE_VAL;
  EXPECT_THAT(testing::error_of([&] { graded_rows(problem, graded, responses); }),
              HasSubstr("problem 'p', sample 2 is inf"));
}

}  // namespace
}  // namespace antisd::inline eval
