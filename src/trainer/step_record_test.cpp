// A step's metrics under verl's names, computed again from the dump of its rollouts.

#include "trainer/step_record.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <gmock/gmock.h>

#include "trainer/testing.h"

namespace antisd::inline trainer {
namespace {

using testing::SmallTraining;

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void expect_statistics(const Json& row, const std::string& name,
                       const std::vector<double>& values) {
  ASSERT_FALSE(values.empty()) << name;
  EXPECT_NEAR(row.at(name + "/mean").get<double>(), mean_of(values), 1e-12) << name;
  EXPECT_EQ(row.at(name + "/max"), *std::ranges::max_element(values)) << name;
  EXPECT_EQ(row.at(name + "/min"), *std::ranges::min_element(values)) << name;
}

// The values of all responses of a dump.
struct DumpedStep {
  std::vector<double> rewards, returns, advantages, lengths, prompts;
  double truncated = 0, responses = 0;

  explicit DumpedStep(const std::vector<Json>& rows) {
    for (const Json& row : rows) {
      ++responses;
      const std::size_t tokens = row["response_ids"].size();
      lengths.push_back(static_cast<double>(tokens));
      prompts.push_back(static_cast<double>(row["prompt_ids"].size()));
      truncated += row["truncated"].get<bool>();
      if (row["reward"].is_null()) continue;
      rewards.push_back(row["reward"]);
      returns.insert(returns.end(), tokens, row["group_advantage"].get<double>());
      for (const Json& advantage : row["token_advantage"])
        advantages.push_back(advantage);
    }
  }
};

// Prompts of two lengths, graders that fail.
std::vector<Json> run_small(SmallTraining& training) {
  training.grader.fails = true;
  EXPECT_TRUE(training.run());
  return training.rows("metrics.jsonl");
}

std::vector<std::string> two_lengths(const testing::TemporaryFolder& folder,
                                     const std::string& method) {
  std::string rows;
  for (const char* numbers : {"1 2", "1 2 3", "4 5", "4 5 6", "1 3", "2 2"})
    rows += fmt::format(R"({{"problem":"Numbers {} target 3","answer":"win"}})"
                        "\n",
                        numbers);
  write_file_atomically(folder / "problems.jsonl", rows);
  return {"data.train=" + (folder / "problems.jsonl").string(), "method.name=" + method,
          "train.steps=5"};
}

TEST(StepMetrics, AreThoseOfTheDump) {
  const testing::TemporaryFolder folder;
  std::vector<std::string> settings = two_lengths(folder, "antisd");
  double longest = 0;
  {
    SmallTraining training(settings);
    const std::vector<Json> rows = run_small(training);
    for (const Json& row : rows) {
      EXPECT_EQ(row["prompt_length/clip_ratio"], 0);
      longest = std::max(longest, row["prompt_length/max"].get<double>());
    }
  }
  settings.push_back(fmt::format("data.max_prompt_tokens={}", longest));
  SmallTraining training(settings);
  const std::vector<Json> rows = run_small(training);
  ASSERT_EQ(rows.size(), 5u);
  bool some_longest = false, some_ungraded = false, term_matters = false;
  for (const Json& row : rows) {
    const DumpedStep dump(training.rows(
        fmt::format("rollouts/step-{:06}.jsonl", row["training/global_step"].get<int>())));
    expect_statistics(row, "critic/score", dump.rewards);
    expect_statistics(row, "critic/rewards", dump.rewards);
    expect_statistics(row, "critic/returns", dump.returns);
    expect_statistics(row, "critic/advantages", dump.advantages);
    expect_statistics(row, "response_length", dump.lengths);
    expect_statistics(row, "response_length_non_aborted", dump.lengths);
    expect_statistics(row, "prompt_length", dump.prompts);
    EXPECT_EQ(row["response_length/clip_ratio"], dump.truncated / dump.responses);
    EXPECT_EQ(row["response_length_non_aborted/clip_ratio"], dump.truncated / dump.responses);
    EXPECT_EQ(row["response/aborted_ratio"], 0);
    const auto at_limit = std::ranges::count(dump.prompts, longest);
    EXPECT_EQ(row["prompt_length/clip_ratio"], static_cast<double>(at_limit) / dump.responses);

    const double sampled = mean_of(dump.lengths) * dump.responses;
    const double all = sampled + mean_of(dump.prompts) * dump.responses;
    const std::map<std::string, double> tokens = {
        {"gen", sampled}, {"score", all}, {"adv", all}, {"update_actor", all}};
    for (const auto& [phase, count] : tokens) {
      const double seconds = row["timing_s/" + phase], each = row["timing_per_token_ms/" + phase];
      EXPECT_NEAR(each * count / 1000, seconds, 1e-9 * seconds) << phase;
    }
    some_longest |= at_limit > 0 && at_limit < dump.responses;
    some_ungraded |= std::ssize(dump.rewards) < dump.responses;
    term_matters |= row["critic/returns/max"] != row["critic/advantages/max"];
  }
  EXPECT_TRUE(some_longest && some_ungraded && term_matters);
}

TEST(StepMetrics, WithoutATermReturnsAreAdvantages) {
  const testing::TemporaryFolder folder;
  SmallTraining training(two_lengths(folder, "grpo"));
  for (const Json& row : run_small(training)) {
    EXPECT_NEAR(row["critic/returns/mean"].get<double>(),
                row["critic/advantages/mean"].get<double>(), 1e-12);
    EXPECT_EQ(row["critic/returns/max"], row["critic/advantages/max"]);
    EXPECT_EQ(row["critic/returns/min"], row["critic/advantages/min"]);
  }
}

// An empty response has no length and no token of its own.
TEST(StepMetrics, AnEmptyResponseIsAborted) {
  StepRecord record{.step = 1, .max_prompt_tokens = 3};
  record.prompts.prompts.resize(1);
  record.prompts.prompts[0].ids = {1, 2, 3};
  record.batch.groups = {{.responses = std::vector<Response>(2)}};
  record.batch[0].ids = {4, 5, 6, 7};
  record.batch[0].finish = FinishReason::kLength;
  const MetricSet metrics = step_metrics(record);
  EXPECT_EQ(metrics.find("response_length/min"), 0);
  EXPECT_EQ(metrics.find("response_length/clip_ratio"), 0.5);
  EXPECT_EQ(metrics.find("response_length_non_aborted/min"), 4);
  EXPECT_EQ(metrics.find("response_length_non_aborted/clip_ratio"), 1);
  EXPECT_EQ(metrics.find("response/aborted_ratio"), 0.5);
  EXPECT_EQ(metrics.find("prompt_length/clip_ratio"), 1);
}

}  // namespace
}  // namespace antisd::inline trainer
