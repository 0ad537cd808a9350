// `train` and `pretrain` with optimizer state on the host: the files are those of a resident state.
// A CPU computes in fp32, so there are moments alone; optim and run/checkpoint test masters.

#include <gmock/gmock.h>

#include "cli/weights/train_testing.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::Outcome;

class TrainOffload : public testing::TrainTest {
 protected:
  TrainOffload() : TrainTest({"train.micro_batches=3", "checkpoint.every=2"}) {}

  void expect_run(const std::string& run, const std::string& more) const {
    const Outcome outcome = train(run, more);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  }
  void expect_same(const std::string& run, const std::string& other) const {
    EXPECT_TRUE(weights(run, 6) == weights(other, 6)) << run;
    EXPECT_EQ(reproducible(run), reproducible(other)) << run;
  }
};

TEST_F(TrainOffload, RunsAreTheSameAndGoOnFromEachOther) {
  expect_run("none", "optim.offload=none");
  expect_run("auto", "");
  expect_run("moments", "optim.offload=moments");
  expect_run("all", "optim.offload=all");
  expect_run("mixed", "optim.offload=all train.steps=2");
  expect_run("mixed", "--resume optim.offload=none train.steps=4");
  expect_run("mixed", "--resume optim.offload=moments");
  expect_run("other", "optim.offload=none train.steps=4");
  expect_run("other", "--resume optim.offload=all");
  for (const char* run : {"auto", "moments", "all", "mixed", "other"})
    expect_same(run, "none");
}

TEST_F(TrainOffload, ATeacherFollowsTheWeights) {
  const std::string method = "method.name=sdpo method.sdpo.teacher_ema=0.05 ";
  expect_run("none", method + "optim.offload=none");
  expect_run("all", method + "optim.offload=all train.steps=4");
  expect_run("all", method + "optim.offload=all --resume");
  expect_same("all", "none");
}

TEST_F(TrainOffload, EachRankHasItsPartOnTheHost) {
  expect_run("one", "optim.offload=none");
  for (const char* shard : {"none", "optimizer", "gradients", "weights"}) {
    const std::string run = fmt::format("three-{}", shard);
    expect_run(run, fmt::format("dist.shard={} optim.offload=all --processes 3", shard));
    expect_same(run, "one");
  }
  expect_run("mixed", "dist.shard=weights optim.offload=all train.steps=2 --processes 2");
  expect_run("mixed", "optim.offload=moments --resume");
  expect_same("mixed", "one");
}

TEST_F(TrainOffload, DocumentsToo) {
  const auto pretrain = [&](const std::string& folder, const char* offload) {
    const Outcome outcome = run(fmt::format(
        "pretrain record.dir={} --threads 1 --device cpu optim.offload={} "
        "pretrain.source=countdown:3 pretrain.new_model.hidden=32 pretrain.new_model.layers=1 "
        "pretrain.new_model.heads=2 pretrain.new_model.head_dim=16 "
        "pretrain.new_model.intermediate=64 pretrain.new_model.positions=256 "
        "pretrain.documents_per_step=16 pretrain.sequence_tokens=256 pretrain.eval_documents=8 "
        "optim.lr=0.01 train.steps=6 train.micro_batch_tokens=400",
        folder, offload));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  };
  pretrain("none", "none");
  pretrain("all", "all");
  EXPECT_TRUE(weights("all", 6) == weights("none", 6));
}

TEST_F(TrainOffload, AnUnknownPlaceIsRefused) {
  const Outcome refused = train("run", "optim.offload=disk");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("optim.offload"));
}

}  // namespace
}  // namespace antisd::inline cli
