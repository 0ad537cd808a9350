#include "reward/grading_stage.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd::inline reward {
namespace {

using ::testing::HasSubstr;

// Takes longer for earlier requests, so that they finish out of order.
class SlowGrader : public Grader {
 public:
  Verdict grade(const GradeRequest& request) override {
    const int now = ++running;
    for (int most = peak; most < now && !peak.compare_exchange_weak(most, now);) {
    }
    const int number = std::stoi(request.response);
    std::this_thread::sleep_for(std::chrono::milliseconds(number % 3 == 0 ? 4 : 1));
    --running;
    if (number == 13) throw InputError("cannot grade 13");
    if (number == 113) return {.reward = std::nan("")};
    if (number % 10 == 7) return {std::nullopt, "sevens are hard"};
    return {number % 2 == 0 ? 1.0 : 0.25, "", 0, 0, request.answer};
  }
  std::atomic<int> running{0}, peak{0};
};

std::vector<Response> responses_of(std::initializer_list<int> numbers) {
  std::vector<Response> responses;
  for (const int number : numbers)
    responses.emplace_back().text = std::to_string(number);
  return responses;
}

TEST(GradingStage, VerdictsComeInTheOrderOfTheGroups) {
  SlowGrader grader;
  GradingStage stage(grader, {.workers = 4, .open = 8});
  Problem problem;
  problem.answer = "gold";
  for (int i = 20; i < 80; i += 2) {
    std::vector<Response> group = responses_of({i, i + 1, 4});
    group[2].finish = FinishReason::kLength;
    stage.submit(static_cast<std::size_t>(i), problem, group);
  }
  std::vector<GradedGroup> all = stage.take_done();
  for (GradedGroup& group : stage.finish())
    all.push_back(std::move(group));
  ASSERT_EQ(all.size(), 30u);
  std::ranges::sort(all, {}, &GradedGroup::group);
  for (std::size_t g = 0; g < all.size(); ++g) {
    const int first = 20 + 2 * static_cast<int>(g);
    ASSERT_EQ(all[g].group, static_cast<std::size_t>(first));
    EXPECT_EQ(all[g].asked, 2);
    EXPECT_EQ(all[g].verdicts[0].reward, 1.0);
    EXPECT_EQ(all[g].verdicts[0].extracted, "gold");
    if ((first + 1) % 10 == 7) {
      EXPECT_EQ(all[g].verdicts[1].reward, std::nullopt);
      EXPECT_EQ(all[g].verdicts[1].reason, "sevens are hard");
    } else {
      EXPECT_EQ(all[g].verdicts[1].reward, 0.25);
    }
    EXPECT_EQ(all[g].verdicts[2].reward, 0.0);  // it would be right if it were graded
    EXPECT_EQ(all[g].verdicts[2].reason, "truncated");
  }
  EXPECT_LE(grader.peak, 4);
  EXPECT_TRUE(stage.finish().empty());
}

// Grades a group by its longest response; the group's answer says what else it does.
class TogetherGrader : public Grader {
 public:
  Verdict grade(const GradeRequest& request) override { return grade_group({&request, 1}).front(); }
  bool grades_groups() const override { return true; }
  std::vector<Verdict> grade_group(std::span<const GradeRequest> requests) override {
    if (requests.front().answer == "throw") throw InputError("no such group");
    double longest = 0;
    for (const GradeRequest& request : requests)
      longest = std::max(longest, static_cast<double>(request.response.size()));
    std::vector<Verdict> verdicts;
    for (const GradeRequest& request : requests)
      verdicts.push_back({.reward = static_cast<double>(request.response.size()) / longest,
                          .reason = std::to_string(requests.size())});
    return verdicts;
  }
};

TEST(GradingStage, AGroupIsGradedTogetherWithoutItsTruncatedResponses) {
  TogetherGrader grader;
  GradingStage stage(grader, {.workers = 3, .open = 2, .truncated_reward = -0.5});
  Problem problem;
  for (std::size_t g = 0; g < 20; ++g) {
    std::vector<Response> group = responses_of({1, 1000'000, 22, 4444});
    group[1].finish = FinishReason::kLength;
    stage.submit(g, problem, group);
  }
  stage.submit(20, problem, std::vector<Response>());
  const std::vector<GradedGroup> all = stage.finish();
  ASSERT_EQ(all.size(), 21u);
  for (std::size_t g = 0; g < 20; ++g) {
    EXPECT_EQ(all[g].group, g);
    EXPECT_EQ(all[g].asked, 3);
    EXPECT_EQ(all[g].verdicts[0].reward, 0.25);
    EXPECT_EQ(all[g].verdicts[1].reward, -0.5) << "truncated";
    EXPECT_EQ(all[g].verdicts[2].reward, 0.5);
    EXPECT_EQ(all[g].verdicts[3].reward, 1.0);
    EXPECT_EQ(all[g].verdicts[3].reason, "3");
  }
  problem.answer = "throw";
  stage.submit(0, problem, responses_of({1, 2}));
  EXPECT_THAT(testing::error_of([&] { stage.finish(); }), HasSubstr("no such group"));
  problem.answer = "";
  stage.submit(0, problem, responses_of({1}));
  EXPECT_EQ(stage.finish().at(0).verdicts[0].reward, 1.0) << "its place is free again";
}

TEST(GradingStage, WritesTheVerdictsOfABatch) {
  SlowGrader grader;
  GradingStage stage(grader, {.workers = 2});
  ResponseBatch batch;
  batch.groups = {{responses_of({2, 3})}, {responses_of({7, 4})}};
  batch[3].finish = FinishReason::kLength;
  for (const std::size_t g : {1, 0})  // as they end
    stage.submit(g, {}, batch.groups[g].responses);
  const GradeCounts counts = stage.finish(batch);
  EXPECT_EQ(counts.asked, 3);
  EXPECT_EQ(counts.graded, 2);
  EXPECT_EQ(counts.last_reason, "sevens are hard");
  EXPECT_EQ(batch[0].verdict.reward, 1.0);
  EXPECT_EQ(batch[1].verdict.reward, 0.25);
  EXPECT_TRUE(batch[2].verdict.failed());
  EXPECT_EQ(batch[3].verdict.reason, "truncated");

  batch.groups[1].responses = responses_of({2, 113});
  stage.submit(1, {}, batch.groups[1].responses);
  try {
    stage.finish(batch);
    FAIL() << "no error";
  } catch (const BadRewardError& error) {
    EXPECT_EQ(error.number, 3u);
    EXPECT_THAT(error.message(), HasSubstr("a reward is nan, not a finite number"));
  }
}

TEST(GradingStage, AnErrorIsRethrownAndTheStageGoesOn) {
  SlowGrader grader;
  GradingStage stage(grader, {.workers = 2, .open = 1});
  stage.submit(0, {}, responses_of({10, 11, 12, 13, 14, 15}));
  EXPECT_THAT(testing::error_of([&] { stage.finish(); }), HasSubstr("cannot grade 13"));
  stage.submit(1, {}, responses_of({2}));
  EXPECT_EQ(stage.finish().at(0).verdicts.at(0).reward, 1.0);
}

TEST(GradingStage, DropsWhatIsNotDoneOnceItIsStopped) {
  SlowGrader grader;
  std::size_t done = 0;
  {
    GradingStage stage(grader, {.workers = 1, .open = 1000});
    for (std::size_t g = 0; g < 600; ++g)
      stage.submit(g, {}, responses_of({3}));
    while (done < 2)
      done += stage.take_done().size();
    done += stage.finish([] { return true; }).size();
  }
  EXPECT_GE(done, 2u);
  EXPECT_LT(done, 600u);
}

TEST(Grader, EveryKindGrades) {
  RewardConfig config;
  EXPECT_EQ(
      make_grader(config)->grade({.response = "so \\boxed{0.5}", .answer = "\\frac12"}).reward,
      1.0);
  EXPECT_EQ(
      make_grader(config)->grade({.response = "so \\boxed{0.4}", .answer = "\\frac12"}).reward,
      0.0);
  config.kind = "countdown";
  const GradeRequest search{
      .response = "Let 6 - 3 = 3 ; 3 * 11 = 33 ; 33 - 4 = 29 holds So boxed 29",
      .problem = "Numbers 4 11 3 6 target 29"};
  EXPECT_EQ(make_grader(config)->grade(search).reward, 1.0);
  config.kind = "code";
  const GradeRequest program{
      .response = "```python\ndef f(x):\n    return x * x\n```",
      .tests = {{"kind", "asserts"}, {"code", "assert f(2) == 4\nassert f(3) == 8"}}};
  EXPECT_EQ(make_grader(config)->grade(program).reward, 0.5);
  config.kind = "command";
  config.command =
      R"(while read -r line; do id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'); )"
      R"(printf '{"id":%s,"reward":0.75,"reason":"shell"}\n' "$id"; done)";
  const Verdict verdict = make_grader(config)->grade({.response = "anything"});
  EXPECT_EQ(verdict.reward, 0.75) << verdict.reason;
}

}  // namespace
}  // namespace antisd::inline reward
