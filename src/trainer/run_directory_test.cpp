// What becomes of a run when its directory goes away or memory runs out.
#include <new>

#include <gmock/gmock.h>

#include "run/checkpoint/checkpoint.h"
#include "run/run_lock.h"
#include "trainer/testing.h"

namespace antisd::inline trainer {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::SmallTraining;

// Removed before the fourth step and before the sixth; a save each other step, which is over by
// then.
TEST(RunDirectory, ADirectoryThatIsRemovedIsMadeAnewAtTheNextSave) {
  SmallTraining training({"train.steps=6", "checkpoint.every=2", "record.rollouts_every=0"});
  const fs::path run = training.recorder->directory();
  const std::string settings = read_file(run / "config.toml");
  ::testing::internal::CaptureStderr();
  training.run([&] {
    if (training.state->step == 3) fs::remove_all(run);
    if (training.state->step == 5) fs::remove(run / "metrics.jsonl");
    return false;
  });
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr(run.string() + " was removed while the run goes on"));
  EXPECT_THAT(said, HasSubstr("metrics.jsonl was removed while the run goes on"));
  EXPECT_EQ(read_file(run / "config.toml"), settings);
  EXPECT_TRUE(fs::exists(run / "run.json"));
  EXPECT_EQ(find_newest_whole(run / "checkpoints").found->step, 6);
  // Rows went with the files that were removed, but for what follows a save.
  training.recorder->metrics(7, {});
  EXPECT_THAT(training.rows("metrics.jsonl"), SizeIs(1));
}

// Whoever begins a run in the place of the one that was removed keeps it.
TEST(RunDirectory, ARunThatBeganInTheSamePlaceIsLeftAlone) {
  SmallTraining training({"train.steps=2", "record.rollouts_every=0"});
  const fs::path run = training.recorder->directory();
  std::optional<RunLock> other;
  ::testing::internal::CaptureStderr();
  try {
    training.run([&] {
      if (training.state->step == 1) {
        fs::remove_all(run);
        other.emplace(run);
      }
      return false;
    });
  } catch (const RunError&) {  // of the last save, which has no place
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("another process is training in this run directory"));
  EXPECT_FALSE(fs::exists(run / "checkpoints"));
  EXPECT_FALSE(fs::exists(run / "metrics.jsonl"));
}

class ForgetfulGrader : public Grader {
 public:
  explicit ForgetfulGrader(const TrainState& state) : state_(state) {}
  Verdict grade(const GradeRequest& request) override {
    if (state_.step == 2) throw std::bad_alloc();  // in the third step
    return {request.response.size() % 2 == 0 ? 1.0 : 0.0, ""};
  }

 private:
  const TrainState& state_;
};

TEST(RunDirectory, MemoryThatRunsOutInAStepCostsThatStepAlone) {
  SmallTraining training({"reward.workers=1"});
  ForgetfulGrader grader(*training.state);
  EXPECT_THAT(testing::error_of([&] { training.run_with(grader, {1}); }),
              HasSubstr("out of memory"));
  EXPECT_EQ(training.state->step, 2);
  const fs::path run = training.recorder->directory();
  EXPECT_EQ(find_newest_whole(run / "checkpoints").found->step, 2);
  EXPECT_THAT(training.rows("metrics.jsonl"), SizeIs(2));
}

}  // namespace
}  // namespace antisd::inline trainer
