// A cluster of 16 and of 64 ranks, as threads: the whole loop of training against one process.
#include <gmock/gmock.h>

#include "run/checkpoint/checkpoint.h"
#include "trainer/ranks_testing.h"

namespace antisd::inline trainer {
namespace {

using testing::BreakingGrader;
using ::testing::Each;
using testing::expect_same;
using testing::Settings;
using ::testing::SizeIs;
using testing::SmallTraining;
using testing::train_alone;
using testing::train_on;
using testing::TrainingOutcome;
using testing::weight_bytes;
using testing::with;

// 20 prompts and 80 responses: 16 ranks have unequal shares, of 64 ranks most have no prompt. With
// 64 micro-batches 16 ranks work in several rounds, 64 ranks in one.
const Settings& cluster_settings() {
  static const Settings settings = {"train.steps=2",          "rollout.prompts_per_step=20",
                                    "train.micro_batches=64", "method.gate.warmup_steps=1",
                                    "reward.workers=1",       "checkpoint.every=1",
                                    "optim.schedule=constant"};
  return settings;
}

const TrainingOutcome& one_process() {
  static const TrainingOutcome outcome = train_alone(cluster_settings());
  return outcome;
}

struct ClusterCase {
  const char* name;
  int ranks;
  ShardOptions shard;  // of nodes with 4 of 16 ranks, or 8 of 64
};

class Cluster : public ::testing::TestWithParam<ClusterCase> {};

TEST_P(Cluster, GivesTheBitsOfOneProcess) {
  ASSERT_THAT(one_process().metrics, SizeIs(2));
  expect_same(train_on(GetParam().ranks, cluster_settings(), GetParam().shard), one_process());
}

INSTANTIATE_TEST_SUITE_P(
    Sharded, Cluster,
    ::testing::Values(
        ClusterCase{"Ranks16None", 16, {}}, ClusterCase{"Ranks16Optimizer", 16, {.members = 16}},
        ClusterCase{"Ranks16OptimizerOverNode", 16, {.members = 4}},
        ClusterCase{"Ranks16Gradients", 16, {.members = 16, .gradients = true}},
        ClusterCase{"Ranks16GradientsOverNode", 16, {.members = 4, .gradients = true}},
        ClusterCase{"Ranks16Weights", 16, {.members = 16, .gradients = true, .weights = true}},
        ClusterCase{"Ranks64None", 64, {}}, ClusterCase{"Ranks64Optimizer", 64, {.members = 64}},
        ClusterCase{"Ranks64OptimizerOverNode", 64, {.members = 8}},
        ClusterCase{"Ranks64Gradients", 64, {.members = 64, .gradients = true}},
        ClusterCase{"Ranks64GradientsOverNode", 64, {.members = 8, .gradients = true}},
        ClusterCase{
            "Ranks64WeightsOverNode", 64, {.members = 8, .gradients = true, .weights = true}}),
    [](const auto& info) { return std::string(info.param.name); });

// A single prompt with three responses: 63 ranks sample nothing, 61 have no micro-batch.
TEST(ClusterOf64, OneMaySampleForAll) {
  const Settings settings = {"train.steps=2", "rollout.prompts_per_step=1", "rollout.group_size=3",
                             "train.micro_batches=64"};
  expect_same(train_on(64, settings, {.members = 8, .gradients = true}), train_alone(settings));
}

// What 64 ranks saved is continued by 16, by 64 that divide it in another way, and by one.
TEST(ClusterOf64, ARunGoesOnWithAnotherNumberOfRanks) {
  const TrainingOutcome saved =
      train_on(64, with(cluster_settings(), {"train.steps=1"}), {.members = 8, .gradients = true});
  const testing::TemporaryFolder kept;
  for (const auto& [path, bytes] : saved.checkpoints) {
    const std::filesystem::path file = kept / path;
    std::filesystem::create_directories(file.parent_path());
    write_file_atomically(file, bytes);
  }
  const std::filesystem::path checkpoint = kept / "checkpoints" / "step-000001";
  struct Continued {
    int ranks, members;
  };
  for (const auto& [size, members] : {Continued{16, 16}, Continued{64, 64}, Continued{1, 1}}) {
    std::vector<std::string> weights(static_cast<std::size_t>(size));
    run_ranks(size, [&](Communicator& ranks) {
      SmallTraining rest(cluster_settings(), ranks, {.members = members});
      resume(*rest.state, checkpoint);
      EXPECT_TRUE(rest.run());
      weights[static_cast<std::size_t>(ranks.rank())] = weight_bytes(rest.state->model);
    });
    for (const std::string& own : weights)
      EXPECT_TRUE(own == one_process().weights) << size;
  }
}

// Rank 41 has one of the 20 prompts.
TEST(ClusterOf64, WhatFailsOnOneEndsAll) {
  std::vector<std::string> messages(64);
  std::vector<std::int64_t> steps(64);
  std::int64_t saved = -1;
  run_ranks(64, [&](Communicator& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank());
    SmallTraining training(with(cluster_settings(), {"train.steps=20", "checkpoint.every=0"}),
                           ranks, {.members = 8});
    BreakingGrader grader(rank == 41 ? 4 : 1000);
    try {
      training.run_with(grader, {1});
    } catch (const RunError& error) {
      messages[rank] = error.problem();
    }
    steps[rank] = training.state->step;
    if (rank == 0)
      saved = find_newest_whole(training.recorder->directory() / "checkpoints").found->step;
  });
  EXPECT_EQ(std::exchange(messages[41], "rank 41: the grader is broken"), "the grader is broken");
  EXPECT_THAT(messages, Each("rank 41: the grader is broken"));
  EXPECT_GT(saved, 0);
  EXPECT_THAT(steps, Each(saved));
}

TEST(ClusterOf64, AStopOfOneIsAStopOfAll) {
  std::vector<std::int64_t> steps(64);
  run_ranks(64, [&](Communicator& ranks) {
    SmallTraining training(cluster_settings(), ranks, {.members = 64});
    EXPECT_FALSE(training.run([&] { return ranks.rank() == 63 && training.state->step == 1; }));
    steps[static_cast<std::size_t>(ranks.rank())] = training.state->step;
  });
  EXPECT_THAT(steps, Each(1));
}

}  // namespace
}  // namespace antisd::inline trainer
