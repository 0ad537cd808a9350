// A whole training, with responses that go on in the next step, while the n-th system call on its
// run directory fails: the directory holds what an undisturbed run leaves, or less, and no run ends
// as "finished" without its last checkpoint.
#include <gmock/gmock.h>

#include "core/faults/testing.h"
#include "run/checkpoint/folders.h"
#include "trainer/testing.h"

namespace antisd::inline trainer {
namespace {

namespace fs = std::filesystem;
using testing::FaultKind;
using ::testing::HasSubstr;
using testing::read_tree;
using testing::SmallTraining;

struct End {
  bool finished = false;
  std::string message;  // of the error that ended it, and standard error
};

End train_in(const fs::path& run, const std::string& more = "checkpoint.keep=1") {
  ::testing::internal::CaptureStderr();
  End end;
  try {
    SmallTraining training({"record.dir=" + run.string(), "train.steps=3", "checkpoint.every=1",
                            "record.rollouts_every=2", "rollout.partial=true",
                            "rollout.partial_tokens=2", more});
    // Stopped when it is done, so that the pauses between attempts to save are skipped.
    end.finished = training.run([&] { return training.state->step >= 3; });
    training.recorder->finish("finished", training.state->step);
  } catch (const Error& error) {
    end.message = error.message();
  }
  end.message += ::testing::internal::GetCapturedStderr();
  return end;
}

// Rows of steps in order, each complete.
std::vector<std::int64_t> steps_in(const fs::path& file) {
  std::vector<std::int64_t> steps;
  std::ifstream rows(file);
  for (std::string row; std::getline(rows, row);)
    steps.push_back(Json::parse(row)["training/global_step"].get<std::int64_t>());
  return steps;
}

TEST(TrainerFaults, WhateverTheDiskRefusesTheRunIsWholeOrSaysSo) {
  const testing::TemporaryFolder folder;
  const fs::path run = folder / "run";
  ASSERT_TRUE(train_in(run, "checkpoint.keep=9").finished);
  std::map<std::int64_t, testing::Tree> reference;
  for (const StepFolder& found : step_folders(run / "checkpoints"))
    reference[found.step] = read_tree(found.path);
  ASSERT_EQ(reference.size(), 3u);

  fs::remove_all(run);
  faults::watch(run.string());
  ASSERT_TRUE(train_in(run).finished);
  const std::int64_t calls = faults::calls(), stride = testing::fault_stride(23);
  std::int64_t hit = 0, failed = 0, offset = 0;
  for (const FaultKind& kind : testing::fault_kinds()) {
    for (std::int64_t call = 1 + offset++ % stride; call <= calls; call += stride) {
      faults::disarm();
      fs::remove_all(run);
      faults::arm(kind.at(call));
      const End end = train_in(run);
      faults::disarm();
      hit += faults::failed() > 0;
      failed += !end.finished;
      SCOPED_TRACE(::testing::Message()
                   << kind.name << " at call " << call << ": " << faults::last_failed()
                   << (end.finished ? ", finished: " : ", failed: ") << end.message);
      for (const StepFolder& found : step_folders(run / "checkpoints"))
        EXPECT_EQ(read_tree(found.path), reference.at(found.step)) << found.path;
      if (end.finished) {
        EXPECT_TRUE(fs::exists(run / "checkpoints/step-000003"));
      } else {
        EXPECT_THAT(end.message, HasSubstr("cannot be"));
      }
      const std::vector<std::int64_t> steps = steps_in(run / "metrics.jsonl");
      EXPECT_TRUE(std::ranges::is_sorted(steps));
      if (end.finished && steps.size() < 3) {
        EXPECT_THAT(end.message, HasSubstr("was not written"));
      }
      if (HasFailure()) return;
    }
  }
  faults::watch("/nowhere");
  EXPECT_GT(hit, failed);
  fmt::print("{} calls, {} runs with a fault, {} of them failed\n", calls, hit, failed);
}

}  // namespace
}  // namespace antisd::inline trainer
