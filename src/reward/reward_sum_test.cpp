#include "reward/reward_sum.h"

#include <limits>

#include <gmock/gmock.h>

#include "core/testing.h"
#include "reward/text_terms.h"

namespace antisd::inline reward {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

GradeRequest request_of(const std::string& text, std::size_t tokens = 0) {
  return {.response = text, .answer = "4", .ids = std::vector<TokenId>(tokens), .has_ids = true};
}

// Gives the number that the response is, if it is one, and counts how it is asked.
class NumberGrader : public Grader {
 public:
  explicit NumberGrader(double factor, bool in_groups = false)
      : factor_(factor), in_groups_(in_groups) {}
  Verdict grade(const GradeRequest& request) override {
    if (request.response == "?") return {.reward = {}, .reason = "who knows"};
    return {.reward = factor_ * std::stod(request.response), .reason = "a number"};
  }
  bool grades_groups() const override { return in_groups_; }
  std::vector<Verdict> grade_group(std::span<const GradeRequest> requests) override {
    groups.push_back(requests.size());
    return Grader::grade_group(requests);
  }
  std::vector<std::string> take_warnings() override { return {"of a number"}; }
  std::vector<std::size_t> groups;

 private:
  double factor_;
  bool in_groups_;
};

TEST(RewardSum, AddsItsTermsWithTheirWeights) {
  std::vector<WeightedTerm> terms;
  terms.push_back({"double", 0.25, std::make_unique<NumberGrader>(2)});
  terms.push_back({"form", -0.5, std::make_unique<FormatTerm>("0\\.[0-9]+")});
  RewardSum sum(std::make_unique<NumberGrader>(1), {.weight = 3, .correct_at = 0.5},
                std::move(terms));
  // 3 x 0.5 + 0.25 x 1 - 0.5 x 1
  const Verdict right = sum.grade(request_of("0.5"));
  EXPECT_EQ(right.reward, 1.25);
  EXPECT_TRUE(right.correct()) << "the grader's own 0.5";
  EXPECT_EQ(right.reason, "a number");
  EXPECT_THAT(right.parts,
              ElementsAre(Pair("double", 1.0), Pair("form", 1.0), Pair("grader", 0.5)));
  EXPECT_EQ(right.own_reward(), 0.5);
  // 3 x 0.25 + 0.25 x 0.5 - 0.5: a sum of 0.375, and wrong
  const Verdict wrong = sum.grade(request_of("0.25"));
  EXPECT_EQ(wrong.reward, 0.375);
  EXPECT_FALSE(wrong.correct());
  EXPECT_EQ(sum.grade(request_of("2")).reward, 7.0) << "3 x 2 + 0.25 x 4, without the form";
  EXPECT_EQ(sum.grade(request_of("?")).reason, "who knows");
  EXPECT_THAT(sum.take_warnings(), ElementsAre("of a number", "of a number"));
}

TEST(RewardSum, APartThatFailsLeavesNoGrade) {
  std::vector<WeightedTerm> terms;
  terms.push_back({"slow", 1, std::make_unique<FormatTerm>("(a+)+[bc]")});
  RewardSum sum(std::make_unique<FormatTerm>(".*"), {}, std::move(terms));
  const Verdict verdict = sum.grade(request_of(std::string(40, 'a')));
  EXPECT_EQ(verdict.reward, std::nullopt);
  EXPECT_FALSE(verdict.correct());
  EXPECT_THAT(verdict.reason, HasSubstr("reward.terms.slow: the regular expression gave up"));
  EXPECT_EQ(sum.grade(request_of("aab")).reward, 2.0);
}

TEST(RewardSum, ASumThatOverflowsIsNoGrade) {
  std::vector<WeightedTerm> terms;
  terms.push_back({"huge", 1e200, std::make_unique<NumberGrader>(1e200)});
  RewardSum sum(std::make_unique<NumberGrader>(1), {}, std::move(terms));
  EXPECT_THAT(sum.grade(request_of("1")).reason, HasSubstr("not finite"));
  EXPECT_EQ(sum.grade(request_of("0")).reward, 0.0);
}

TEST(RewardSum, GroupsStayTogether) {
  auto batched = std::make_unique<NumberGrader>(10, /*in_groups=*/true);
  NumberGrader& seen = *batched;
  std::vector<WeightedTerm> terms;
  terms.push_back({"batched", 1, std::move(batched)});
  RewardSum sum(std::make_unique<NumberGrader>(1), {}, std::move(terms));
  EXPECT_TRUE(sum.grades_groups());
  const std::vector<GradeRequest> group = {request_of("1"), request_of("?"), request_of("2")};
  const std::vector<Verdict> verdicts = sum.grade_group(group);
  EXPECT_EQ(verdicts[0].reward, 11.0);
  EXPECT_EQ(verdicts[1].reward, std::nullopt);
  EXPECT_EQ(verdicts[2].reward, 22.0);
  EXPECT_THAT(seen.groups, ElementsAre(3u));
}

TEST(FormatTerm, TheWholeResponseMatches) {
  FormatTerm term("<think>.*</think>\\s*\\S.*");
  EXPECT_EQ(term.grade(request_of("<think>a\nb</think>\n4")).reward, 1.0);
  EXPECT_EQ(term.grade(request_of("x<think>a</think>4")).reward, 0.0);
  EXPECT_EQ(term.grade(request_of("<think>a</think>\n")).reward, 0.0);
  EXPECT_EQ(FormatTerm("\\w+").grade(request_of("größe")).reward, 1.0);
  EXPECT_EQ(FormatTerm(".").grade(request_of("\xff")).reward, 1.0) << "as U+FFFD";
  EXPECT_EQ(FormatTerm("a|ab").grade(request_of("ab")).reward, 1.0) << "not the first way alone";
  EXPECT_THAT(testing::error_of([] { FormatTerm("(a"); }), HasSubstr("not valid"));
}

TEST(LengthTerm, IsLinearBetweenTwoLengths) {
  LengthTerm tokens("tokens 10 30");
  EXPECT_EQ(tokens.grade(request_of("", 0)).reward, 0.0);
  EXPECT_EQ(tokens.grade(request_of("", 10)).reward, 0.0);
  EXPECT_EQ(tokens.grade(request_of("", 15)).reward, 0.25);
  EXPECT_EQ(tokens.grade(request_of("", 30)).reward, 1.0);
  EXPECT_EQ(tokens.grade(request_of("", 99)).reward, 1.0);
  EXPECT_EQ(LengthTerm("characters 0 10").grade(request_of("größe")).reward, 0.5);
  for (const char* bad : {"tokens 10", "tokens 10 10", "tokens 30 10", "words 1 2", "tokens -1 2",
                          "tokens 1 2 3", "tokens 1 x", "tokens 1 nan", ""}) {
    EXPECT_THAT(testing::error_of([&] { LengthTerm term(bad); }), HasSubstr("range of lengths"))
        << bad;
  }
}

TEST(MakeGrader, ReadsTermsAndTolerance) {
  const std::unique_ptr<Grader> grader =
      make_grader({.kind = "math",
                   .relative_tolerance = 0.01,
                   .terms = {{"brief", "length characters 0 100"}, {"boxed", "format .*boxed.*"}},
                   .weights = {{"brief", -0.5}, {"boxed", std::int64_t{2}}}});
  const std::string text = "It is \\boxed{4.03}.";  // 19 characters
  const Verdict verdict = grader->grade(request_of(text));
  EXPECT_EQ(verdict.reward, 1 + 2 * 1.0 + -0.5 * 0.19);
  EXPECT_TRUE(verdict.correct());
  const std::unique_ptr<Grader> exact = make_grader({.kind = "math"});
  EXPECT_EQ(exact->grade(request_of(text)).reward, 0.0);
  EXPECT_EQ(exact->grade(request_of(text)).right, std::nullopt) << "rewards as they were";
  EXPECT_THAT(testing::error_of([] {
                make_grader({.kind = "math", .terms = {{"x", "format (a"}}});
              }),
              HasSubstr("reward.terms.x"));
  EXPECT_TRUE(gets_whole_rows({.kind = "math", .terms = {{"x", "python a.py:b"}}}));
  EXPECT_FALSE(gets_whole_rows({.kind = "math", .terms = {{"x", "format a"}}}));
}

}  // namespace
}  // namespace antisd::inline reward
