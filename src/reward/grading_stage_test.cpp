#include "reward/grading_stage.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// Takes longer for earlier requests, so that they finish out of order.
class SlowGrader : public Grader {
 public:
  Score score(const GradeRequest& request) override {
    const int now = ++running;
    for (int most = peak; most < now && !peak.compare_exchange_weak(most, now);) {
    }
    const int number = std::stoi(request.response);
    std::this_thread::sleep_for(std::chrono::milliseconds(number % 3 == 0 ? 4 : 1));
    --running;
    if (number == 13) throw InputError("cannot grade 13");
    if (number % 10 == 7) return {std::nullopt, "sevens are hard"};
    return {number % 2 == 0 ? 1.0 : 0.25, ""};
  }
  std::atomic<int> running{0}, peak{0};
};

TEST(GradingStage, ScoresComeInTheOrderOfTheRequests) {
  SlowGrader grader;
  std::int64_t last_done = 0;
  GradingStage stage(grader,
                     {.workers = 4, .open = 8, .progress = [&](std::int64_t done, std::int64_t) {
                        EXPECT_EQ(done, last_done + 1);
                        last_done = done;
                      }});
  for (int i = 20; i < 80; ++i)
    stage.submit({.response = std::to_string(i)});
  const std::vector<Score> scores = stage.finish();
  ASSERT_EQ(scores.size(), 60u);
  for (int i = 20; i < 80; ++i) {
    const Score& score = scores[i - 20];
    if (i % 10 == 7) {
      EXPECT_EQ(score.reward, std::nullopt);
    } else {
      EXPECT_EQ(score.reward, i % 2 == 0 ? 1.0 : 0.25);
    }
  }
  EXPECT_LE(grader.peak, 4);
  EXPECT_EQ(stage.statistics().graded, 60);
  EXPECT_EQ(last_done, 60);
  EXPECT_THAT(stage.statistics().undecided, ElementsAre(Pair("sevens are hard", 6)));
}

TEST(GradingStage, AnErrorIsRethrownAndTheStageGoesOn) {
  SlowGrader grader;
  GradingStage stage(grader, {.workers = 2, .open = 1});
  for (int i = 10; i < 16; ++i)
    stage.submit({.response = std::to_string(i)});
  EXPECT_THAT(testing::error_of([&] { stage.finish(); }), HasSubstr("cannot grade 13"));
  stage.submit({.response = "2"});
  EXPECT_EQ(stage.finish().at(0).reward, 1.0);
}

TEST(Grader, EveryKindScores) {
  RewardConfig config;
  EXPECT_EQ(
      make_grader(config)->score({.response = "so \\boxed{0.5}", .answer = "\\frac12"}).reward,
      1.0);
  EXPECT_EQ(
      make_grader(config)->score({.response = "so \\boxed{0.4}", .answer = "\\frac12"}).reward,
      0.0);
  config.kind = "countdown";
  const GradeRequest search{
      .response = "Let 6 - 3 = 3 ; 3 * 11 = 33 ; 33 - 4 = 29 holds So boxed 29",
      .problem = "Numbers 4 11 3 6 target 29"};
  EXPECT_EQ(make_grader(config)->score(search).reward, 1.0);
  config.kind = "code";
  const GradeRequest program{
      .response = "```python\ndef f(x):\n    return x * x\n```",
      .tests = {{"kind", "asserts"}, {"code", "assert f(2) == 4\nassert f(3) == 8"}}};
  EXPECT_EQ(make_grader(config)->score(program).reward, 0.5);
  config.kind = "command";
  config.command =
      R"(while read -r line; do id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'); )"
      R"(printf '{"id":%s,"reward":0.75,"reason":"shell"}\n' "$id"; done)";
  const Score score = make_grader(config)->score({.response = "anything"});
  EXPECT_EQ(score.reward, 0.75) << score.reason;
}

}  // namespace
}  // namespace antisd
