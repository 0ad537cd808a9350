#include "run/recorder.h"

#include <memory>

#include <gmock/gmock.h>

#include "core/error.h"
#include "core/testing.h"
#include "io/atomic_file.h"
#include "io/jsonl.h"

namespace antisd::inline run {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<Json> rows_of(const fs::path& file) {
  std::vector<Json> rows;
  JsonlReader reader(file);
  for (Json row; reader.next(row);)
    rows.push_back(row);
  return rows;
}

std::vector<std::int64_t> steps_of(const fs::path& metrics) {
  std::vector<std::int64_t> steps;
  for (const Json& row : rows_of(metrics))
    steps.push_back(row.at("training/global_step").get<std::int64_t>());
  return steps;
}

MetricSet loss_row(double loss) {
  MetricSet metrics;
  metrics.set("loss", loss);
  return metrics;
}

// start() is a start of the same run.
class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest() {
    config_.options().assign("record.dir=" + run_.string());
    config_.options().assign("record.rollouts_every=2");
  }
  std::unique_ptr<Recorder> start(std::int64_t step) {
    auto recorder = std::make_unique<Recorder>(config_.record, console_);
    recorder->open(config_,
                   {.version = "1",
                    .revision = "abc",
                    .command_line = "antisd train",
                    .device = "cpu",
                    .dtype = "fp32",
                    .method = "grpo"},
                   step);
    return recorder;
  }

  testing::TemporaryFolder folder_;
  fs::path run_ = folder_ / "run";
  Console console_{ConsoleOptions{}};
  RunConfig config_;
};

TEST_F(RecorderTest, ALaterStartCutsRowsAndKeepsWhatWasSet) {
  {
    const auto first = start(0);
    for (const int step : {1, 2, 3})
      first->metrics(step, loss_row(step));
    first->amend(1, loss_row(10));
    first->finish("stopped by a signal", 3);
  }
  const std::string before = read_file(run_ / "config.toml");
  config_.options().assign("optim.lr=0.5");
  const auto second = start(2);
  EXPECT_EQ(read_file(run_ / "config.step-000002.toml"), before);
  EXPECT_THAT(read_file(run_ / "config.toml"), HasSubstr("lr = 0.5"));
  second->metrics(3, loss_row(7));
  EXPECT_THAT(steps_of(run_ / "metrics.jsonl"), ElementsAre(1, 2, 3));
  EXPECT_EQ(second->find_metrics(1)->find("loss"), 10);
  EXPECT_EQ(second->find_metrics(3)->find("loss"), 7);
  EXPECT_FALSE(second->find_metrics(4));
  second->finish("finished", 3);
  const Json run = parse_json(read_file(run_ / "run.json"), "run.json");
  EXPECT_EQ(run.at("exit_reason"), "finished");
  EXPECT_EQ(run.at("first_step"), 2);
  EXPECT_EQ(run.at("method"), "grpo");
  ASSERT_EQ(run.at("earlier").size(), 1);
  EXPECT_EQ(run.at("earlier")[0].at("exit_reason"), "stopped by a signal");
}

TEST_F(RecorderTest, RolloutsAreWrittenWhenDueAndRowsMadeOneByOne) {
  const auto recorder = start(0);
  std::vector<std::size_t> made;
  const auto row = [&](std::size_t r) {
    made.push_back(r);
    return Json{{"sample", r}};
  };
  recorder->rollouts(1, 3, row);
  EXPECT_TRUE(made.empty());
  EXPECT_FALSE(fs::exists(run_ / "rollouts"));
  recorder->rollouts(2, 3, row);
  EXPECT_THAT(made, ElementsAre(0, 1, 2));
  EXPECT_THAT(rows_of(run_ / "rollouts/step-000002.jsonl"),
              ElementsAre(Json{{"sample", 0}}, Json{{"sample", 1}}, Json{{"sample", 2}}));
  const fs::path failed = recorder->failure(3, {{"failure", "the loss is not finite"}});
  EXPECT_EQ(failed, run_ / "failed/step-000003.jsonl");
  EXPECT_THAT(rows_of(failed), ElementsAre(Json{{"failure", "the loss is not finite"}}));
}

// The disk is full for a dump: that is said, and the run goes on.
TEST_F(RecorderTest, WhatCannotBeWrittenIsAWarning) {
  const auto recorder = start(0);
  write_file_atomically(run_ / "rollouts", "a file stands in the folder's place");
  ::testing::internal::CaptureStderr();
  recorder->rollouts(2, 1, [](std::size_t) { return Json::object(); });
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("the rollouts of step 2"), HasSubstr("The run goes on")));
  EXPECT_THAT(read_file(run_ / "log.txt"), HasSubstr(" warning: the rollouts of step 2"));
}

TEST_F(RecorderTest, ADirectoryThatWasRemovedIsMadeAnewWithItsLock) {
  const auto recorder = start(0);
  recorder->metrics(1, loss_row(1));
  const std::string settings = read_file(run_ / "config.toml");
  recorder->restore_directory();  // nothing to do
  EXPECT_THAT(steps_of(run_ / "metrics.jsonl"), ElementsAre(1));
  fs::remove_all(run_);
  ::testing::internal::CaptureStderr();
  recorder->metrics(2, loss_row(2));  // lost
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("was removed"));
  recorder->restore_directory();
  recorder->metrics(3, loss_row(3));
  EXPECT_EQ(read_file(run_ / "config.toml"), settings);
  EXPECT_THAT(steps_of(run_ / "metrics.jsonl"), ElementsAre(3));
  EXPECT_THROW(RunLock{run_}, InputError);
  fs::remove_all(run_);
  const RunLock other(run_);  // another run has begun in its place
  EXPECT_THROW(recorder->restore_directory(), RunError);
}

}  // namespace
}  // namespace antisd::inline run
