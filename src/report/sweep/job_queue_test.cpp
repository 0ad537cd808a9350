#include "report/sweep/job_queue.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "core/testing.h"
#include "io/atomic_file.h"

namespace antisd::inline report {
namespace {

namespace fs = std::filesystem;

class JobQueueTest : public ::testing::Test {
 protected:
  JobSpec shell(const std::string& name, const std::string& script) const {
    return {.name = name,
            .arguments = {"/bin/sh", "-c", script},
            .output = folder_.path() / (name + ".txt"),
            .sign_of_life = folder_.path() / (name + ".alive")};
  }

  // Until nothing runs; returns the largest number that ran at a time.
  int run(JobQueue& queue) const {
    int most = 0;
    for (int turn = 0; turn < 2000 && queue.advance(); ++turn) {
      int running = 0;
      for (const Job& job : queue.jobs())
        running += job.state == JobState::kRunning;
      most = std::max(most, running);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return most;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(JobQueueTest, RunsEverythingWithinTheLimitAndKeepsWhatItPrints) {
  std::vector<JobSpec> specs;
  for (int i = 0; i < 5; ++i)
    specs.push_back(shell("job" + std::to_string(i), "echo out; echo err >&2; sleep 0.05"));
  JobQueue queue(specs, {.jobs = 2});
  EXPECT_EQ(run(queue), 2);
  for (const Job& job : queue.jobs()) {
    EXPECT_EQ(job.state, JobState::kDone);
    EXPECT_EQ(read_file(job.spec.output), "out\nerr\n");
  }
}

TEST_F(JobQueueTest, TellsStoppedFromFailed) {
  JobQueue queue({shell("a", "exit 130"),
                  shell("b", "exit 2"),
                  shell("c", "kill -9 $$"),
                  {.name = "d",
                   .arguments = {"/no/such/program"},
                   .output = folder_.path() / "d.txt",
                   .sign_of_life = {}}},
                 {.jobs = 4});
  run(queue);
  EXPECT_EQ(queue.jobs()[0].state, JobState::kStopped);
  EXPECT_EQ(queue.jobs()[1].state, JobState::kFailed);
  EXPECT_EQ(queue.jobs()[1].exit_status, 2);
  EXPECT_EQ(queue.jobs()[2].exit_status, 137);
  EXPECT_EQ(queue.jobs()[3].exit_status, 127);
}

TEST_F(JobQueueTest, AStopReachesWhatRunsAndStartsNothing) {
  const std::string script = "trap 'exit 130' TERM; while :; do sleep 0.02; done";
  JobQueue queue({shell("a", script), shell("b", script)}, {.jobs = 1});
  ASSERT_TRUE(queue.advance());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  queue.stop();
  run(queue);
  EXPECT_EQ(queue.jobs()[0].state, JobState::kStopped);
  EXPECT_EQ(queue.jobs()[1].state, JobState::kWaiting);
}

TEST_F(JobQueueTest, AStopThatComesBeforeTheProgramListensIsNoFailure) {
  JobQueue queue({shell("a", "sleep 5"), shell("b", "kill -TERM $$")}, {.jobs = 2});
  ASSERT_TRUE(queue.advance());
  for (int turn = 0; turn < 2000 && queue.jobs()[1].state == JobState::kRunning; ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    queue.advance();
  }
  queue.stop();
  run(queue);
  EXPECT_EQ(queue.jobs()[0].state, JobState::kStopped);
  EXPECT_EQ(queue.jobs()[1].state, JobState::kFailed) << "nobody had asked for it";
}

TEST_F(JobQueueTest, TheFirstRunsAloneUntilItsMemoryIsKnown) {
  const std::string alive = (folder_.path() / "a.alive").string();
  JobQueue queue({shell("a", "sleep 0.1; echo 1 > '" + alive + "'; sleep 0.2"),
                  shell("b", "test -e '" + alive + "'")},
                 {.jobs = 2, .memory_bytes = std::int64_t{1} << 40});
  EXPECT_EQ(run(queue), 2);
  EXPECT_EQ(queue.jobs()[1].state, JobState::kDone);
}

TEST(Fits, ByTheLargestPeakSeen) {
  EXPECT_TRUE(fits(0, 0, 10));
  EXPECT_FALSE(fits(1, 0, 10));
  EXPECT_TRUE(fits(1, 5, 10));
  EXPECT_FALSE(fits(2, 5, 10));
  EXPECT_TRUE(fits(7, 5, 0));
}

}  // namespace
}  // namespace antisd::inline report
