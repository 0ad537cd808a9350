// For tests of training on several ranks that are threads, and what it leaves.
//
//   const testing::Settings settings = {"train.steps=4", "train.micro_batches=3"};
//   testing::expect_same(testing::train_on(3, settings, {.members = 3}),
//                        testing::train_alone(settings));
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "trainer/testing.h"

namespace antisd::testing {

using Settings = std::vector<std::string>;

// What a run leaves: weights, rows without times, rollouts, the files of checkpoints.
struct TrainingOutcome {
  std::string weights;
  std::vector<Json> metrics;
  std::vector<std::string> rollouts;
  std::map<std::string, std::string> checkpoints;  // bytes by path
};

inline TrainingOutcome outcome_of(const SmallTraining& training) {
  TrainingOutcome outcome{.weights = weight_bytes(training.state->model)};
  const std::filesystem::path& run = training.recorder->directory();
  for (Json row : training.rows("metrics.jsonl")) {
    std::vector<std::string> times;
    for (const auto& [name, value] : row.items())
      if (is_time_metric(name)) times.push_back(name);
    for (const std::string& name : times)
      row.erase(name);
    outcome.metrics.push_back(row);
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run)) {
    if (!entry.is_regular_file()) continue;
    const std::string path = entry.path().lexically_relative(run).string();
    if (path.starts_with("checkpoints/")) outcome.checkpoints[path] = read_file(entry.path());
    if (path.starts_with("rollouts/")) outcome.rollouts.push_back(path + read_file(entry.path()));
  }
  std::ranges::sort(outcome.rollouts);
  return outcome;
}

inline TrainingOutcome train_alone(const Settings& settings, SmallModel kind = SmallModel::kDense) {
  SmallTraining training(settings, one_rank(), {}, kind);
  EXPECT_TRUE(training.run());
  return outcome_of(training);
}

// Rank 0's outcome; all ranks must end with the same weights.
inline TrainingOutcome train_on(int size, const Settings& settings, ShardOptions shard = {},
                                SmallModel kind = SmallModel::kDense) {
  TrainingOutcome first;
  std::vector<std::string> weights(static_cast<std::size_t>(size));
  run_ranks(size, [&](Communicator& ranks) {
    SmallTraining training(settings, ranks, shard, kind);
    EXPECT_TRUE(training.run());
    training.state->optimizer.make_whole();
    weights[static_cast<std::size_t>(ranks.rank())] = weight_bytes(training.state->model);
    if (ranks.rank() == 0) first = outcome_of(training);
  });
  for (const std::string& own : weights)
    EXPECT_EQ(own, first.weights);
  return first;
}

inline void expect_same(const TrainingOutcome& found, const TrainingOutcome& expected) {
  EXPECT_EQ(found.metrics, expected.metrics);
  EXPECT_EQ(found.rollouts, expected.rollouts);
  EXPECT_TRUE(found.weights == expected.weights);
  ASSERT_EQ(found.checkpoints.size(), expected.checkpoints.size());
  for (const auto& [path, bytes] : expected.checkpoints) {
    ASSERT_TRUE(found.checkpoints.contains(path)) << path;
    EXPECT_TRUE(found.checkpoints.at(path) == bytes) << path;
  }
}

inline Settings with(Settings settings, const Settings& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

// Breaks for good after so many grades.
class BreakingGrader : public WordGrader {
 public:
  explicit BreakingGrader(int grades) : left_(grades) {}
  Verdict grade(const GradeRequest& request) override {
    if (--left_ < 0) throw RunError("the grader is broken");
    return WordGrader::grade(request);
  }

 private:
  std::atomic<int> left_;
};

}  // namespace antisd::testing
