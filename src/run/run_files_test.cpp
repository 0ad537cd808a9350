#include "run/run_files.h"

#include <gtest/gtest.h>

#include "core/testing.h"

namespace antisd::inline run {
namespace {

TEST(RunFiles, AStepAndItsNameBelongTogether) {
  EXPECT_EQ(step_name(10), "step-000010");
  EXPECT_EQ(step_name(12'345'678), "step-12345678");
  EXPECT_EQ(rollouts_file(10), "rollouts/step-000010.jsonl");
  EXPECT_EQ(failure_file(10), "failed/step-000010.jsonl");
  EXPECT_EQ(evaluation_folder(10), "eval/step-000010");
  EXPECT_EQ(step_of_name("step-000010"), 10);
  EXPECT_EQ(step_of_name("step-12345678"), 12'345'678);
  for (const char* name : {"", "step-", "step-10", "step-0000010", "step-00001x", "step--00001",
                           "step-000010.jsonl", ".step-000010.3f2a.tmp"})
    EXPECT_FALSE(step_of_name(name)) << name;
  EXPECT_EQ(step_of_rollouts("step-000010.jsonl"), 10);
  for (const char* name : {"step-000010", "step-10.jsonl", ".jsonl", "step-000010.jsonl.tmp"})
    EXPECT_FALSE(step_of_rollouts(name)) << name;
}

TEST(RunFiles, ARunHasBegunWithItsFirstRowOrCheckpoint) {
  const testing::TemporaryFolder folder;
  EXPECT_FALSE(holds_a_run(folder.path()));
  EXPECT_FALSE(holds_a_run(folder / "missing"));
  std::filesystem::create_directory(folder / "checkpoints");
  EXPECT_TRUE(holds_a_run(folder.path()));
}

}  // namespace
}  // namespace antisd::inline run
