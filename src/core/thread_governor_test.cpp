// The governor with scripted times, and the times that the kernel reports for this process.
#include "core/thread_governor.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

namespace antisd::inline core {
namespace {

using ::testing::ElementsAre;

// Threads after each step, given the share of its time that each step waits.
std::vector<int> follow(int start, int most, const std::vector<double>& shares) {
  CpuTimes times;
  ThreadGovernor governor(start, most, [&] { return times; });
  std::vector<int> threads;
  for (const double share : shares) {
    times.running += 1 - share;
    times.waiting += share;
    governor.observe();
    threads.push_back(governor.threads());
  }
  return threads;
}

TEST(ThreadGovernor, HalvesWhereThreadsWaitForCores) {
  EXPECT_THAT(follow(8, 8, {.01, .5, .5, .5, .7}), ElementsAre(8, 4, 2, 1, 1));
  EXPECT_THAT(follow(2, 2, {.1, .19, .21}), ElementsAre(2, 2, 1)) << "a little waiting is usual";
}

TEST(ThreadGovernor, TriesMoreWhereCoresAreFree) {
  EXPECT_THAT(follow(1, 6, {.01, .01, .01, .01}), ElementsAre(2, 4, 6, 6));
  EXPECT_THAT(follow(1, 2, {.6, .1, .04}), ElementsAre(1, 1, 2));
}

// Only one core is free: every second thread is one too many, and is tried after 1, 2, 4, ...
// steps.
TEST(ThreadGovernor, TriesMoreEverMoreRarelyWhereThatFails) {
  CpuTimes times;
  ThreadGovernor governor(2, 2, [&] { return times; });
  std::vector<int> failures;
  for (int step = 0; step < 40; ++step) {
    const double share = governor.threads() == 2 ? .4 : .01;
    if (governor.threads() == 2) failures.push_back(step);
    times.running += 1 - share;
    times.waiting += share;
    governor.observe();
  }
  EXPECT_THAT(failures, ElementsAre(0, 3, 7, 13, 23));
}

TEST(ThreadGovernor, StaysWhereTheKernelDoesNotCount) {
  ThreadGovernor governor(3, 4, [] { return std::nullopt; });
  governor.observe();
  governor.observe();
  EXPECT_EQ(governor.threads(), 3);
  EXPECT_EQ(ThreadGovernor(9, 4).threads(), 4);
  EXPECT_EQ(ThreadGovernor(0, 0).threads(), 1);
}

// The times grow while threads live, and include a busy loop.
TEST(ThreadGovernor, CountsTheTimesOfAllThreads) {
  const std::optional<CpuTimes> before = own_cpu_times();
  if (!before) GTEST_SKIP() << "no /proc/self/task/*/schedstat here";
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    while (!stop)
      ;
  });
  std::optional<CpuTimes> after = before;
  for (int i = 0; i < 2000 && after->running - before->running < 0.02; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    after = own_cpu_times();
  }
  stop = true;
  busy.join();
  EXPECT_GE(after->running - before->running, 0.02);
  EXPECT_GE(after->waiting, before->waiting);
}

TEST(ThreadGovernor, ACoreIsAlwaysLeft) {
  EXPECT_EQ(unclaimed_threads(1), 1);
  const int found = unclaimed_threads(4);
  EXPECT_GE(found, 1);
  EXPECT_LE(found, 4);
}

}  // namespace
}  // namespace antisd::inline core
