// `sweep` as a user runs it: a grid, a failure in it, resuming, another configuration.

#include "cli/weights/train_testing.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Outcome;

class Sweep : public testing::TrainTest {
 protected:
  Sweep() : TrainTest({"train.steps=2"}) {}

  Outcome sweep(const std::string& arguments) const {
    return run("sweep run.toml record.dir=runs --device cpu " + arguments);
  }
};

TEST_F(Sweep, RunsTheGridOnceAndGoesOn) {
  const Outcome first = sweep("--methods grpo,antisd --seeds 0-1 --jobs 2");
  ASSERT_EQ(first.status, 0) << first.err;
  for (const char* name : {"grpo-seed0", "grpo-seed1", "antisd-seed0", "antisd-seed1"})
    EXPECT_TRUE(fs::exists(folder_ / "runs" / name / "checkpoints/step-000002/MANIFEST.json"));
  EXPECT_THAT(first.out, AllOf(HasSubstr("grpo"), HasSubstr("minus grpo")));

  const std::string before = read_file(folder_ / "runs/grpo-seed0/metrics.jsonl");
  fs::remove_all(folder_ / "runs/antisd-seed1");
  const Outcome second = sweep("--methods grpo,antisd --seeds 0-1 --jobs 2");
  EXPECT_EQ(second.status, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("3 finished before"));
  EXPECT_EQ(read_file(folder_ / "runs/grpo-seed0/metrics.jsonl"), before);
  EXPECT_TRUE(fs::exists(folder_ / "runs/antisd-seed1/metrics.jsonl"));

  const Outcome other = sweep("--methods grpo,antisd --seeds 0-1 optim.lr=0.5");
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.err, AllOf(HasSubstr("optim.lr"), HasSubstr("choose another record.dir")));
}

TEST_F(Sweep, AFailedRunIsToldAndTheOthersFinish) {
  const Outcome outcome = sweep("--methods grpo model.path=model,absent");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("absent"));
  EXPECT_THAT(outcome.out, HasSubstr("grpo"));
}

TEST_F(Sweep, NothingToShowIsAFailure) {
  const Outcome outcome = sweep("--methods grpo model.path=" + (folder_ / "absent").string());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("absent"), HasSubstr("no run finished a step")));
  EXPECT_EQ(outcome.out, "");
}

TEST_F(Sweep, AMistakeIsFoundBeforeAnythingRuns) {
  EXPECT_THAT(sweep("--methods grpo,antsd").err, HasSubstr("antisd"));
  EXPECT_THAT(sweep("optim.lrr=1,2").err, HasSubstr("optim.lr"));
  EXPECT_EQ(sweep("--seeds 3-1").status, 2);
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

}  // namespace
}  // namespace antisd::inline cli
