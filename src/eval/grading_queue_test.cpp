#include "eval/grading_queue.h"

#include <thread>

#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd {
namespace {

using ::testing::HasSubstr;

// "right", "wrong", "slow" (right, later) and "fails".
class WordsGrader : public Grader {
 public:
  Score score(const GradeRequest& request) override {
    if (request.response == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(30));
    if (request.response == "fails") return {.reward = {}, .reason = "out of time"};
    if (request.response == "mad") return {.reward = 2.0};
    if (request.response == "refused") throw InputError("cannot be graded");
    const bool right = request.response != "wrong";
    return {.reward = right ? 1.0 : 0.5, .reason = "", .extracted = request.response};
  }
};

std::vector<SampleRow> group(std::int64_t problem, const std::vector<std::string>& responses) {
  std::vector<SampleRow> rows;
  for (const std::string& response : responses)
    rows.push_back({.id = "p",
                    .problem = problem,
                    .sample = std::ssize(rows),
                    .response = response,
                    .truncated = response == "cut"});
  return rows;
}

TEST(GradingQueue, GivesEverySampleItsVerdict) {
  WordsGrader grader;
  std::vector<std::vector<SampleRow>> done;
  GradingQueue queue(grader, 2, [&](std::vector<SampleRow> rows) { done.push_back(rows); });
  queue.submit({}, group(0, {"slow", "right", "wrong", "fails", "cut"}));
  queue.submit({}, group(1, {"cut", "cut"}));
  queue.finish();
  ASSERT_EQ(done.size(), 2u);
  const std::vector<SampleRow>& rows = done[0].front().problem == 0 ? done[0] : done[1];
  EXPECT_EQ(rows[0].correct, true);
  EXPECT_EQ(rows[1].extracted, "right");
  EXPECT_EQ(rows[2].correct, false);  // half a reward is not right
  EXPECT_EQ(rows[3].correct, std::nullopt);
  EXPECT_EQ(rows[3].reason, "out of time");
  EXPECT_EQ(rows[4].correct, false);
  EXPECT_EQ(rows[4].reason, "truncated");
}

TEST(GradingQueue, HandsOverEachGroupOnceHoweverMany) {
  WordsGrader grader;
  std::vector<std::int64_t> problems;
  GradingQueue queue(grader, 2,
                     [&](std::vector<SampleRow> rows) { problems.push_back(rows[0].problem); });
  std::vector<std::int64_t> all;
  for (std::int64_t p = 0; p < 600; ++p) {
    queue.submit({}, group(p, {"right", "wrong", p % 50 == 0 ? "slow" : "right"}));
    all.push_back(p);
  }
  queue.finish();
  std::sort(problems.begin(), problems.end());
  EXPECT_EQ(problems, all);
}

TEST(GradingQueue, DropsWhatIsNotDoneOnceItIsStopped) {
  WordsGrader grader;
  std::int64_t done = 0;
  GradingQueue queue(grader, 1, [&](std::vector<SampleRow>) { ++done; });
  for (std::int64_t p = 0; p < 300; ++p)
    queue.submit({}, group(p, {"slow"}));
  queue.finish([&] { return done >= 2; });
  EXPECT_GE(done, 2);
  EXPECT_LT(done, 300);
}

TEST(GradingQueue, ReportsARewardThatIsNone) {
  WordsGrader grader;
  const auto grade = [&](const std::string& response) {
    GradingQueue queue(grader, 1, [](std::vector<SampleRow>) {});
    queue.submit({}, group(0, {response}));
    queue.finish();
  };
  EXPECT_THAT(testing::error_of([&] { grade("mad"); }), HasSubstr("problem 'p', sample 0 is 2"));
  EXPECT_THAT(testing::error_of([&] { grade("refused"); }), HasSubstr("cannot be graded"));
}

}  // namespace
}  // namespace antisd
