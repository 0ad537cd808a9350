#include "core/thread_pool.h"

#include <atomic>
#include <iostream>
#include <stdexcept>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/limit_testing.h"
#include "core/testing.h"

namespace antisd::inline core {
namespace {

TEST(ThreadPool, RunsEveryIndexOnce) {
  for (const int threads : {0, 1, 3}) {
    ThreadPool pool(threads);
    for (const std::size_t count : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> runs(count);
      pool.parallel_for(count, [&](std::size_t i) { ++runs[i]; });
      for (const auto& r : runs)
        EXPECT_EQ(r, 1);
    }
  }
}

TEST(ThreadPool, LoopsNestWithoutDeadlock) {
  ThreadPool pool(2);
  std::atomic<int> sum{0};
  pool.parallel_for(8, [&](std::size_t) { pool.parallel_for(8, [&](std::size_t) { ++sum; }); });
  EXPECT_EQ(sum, 64);
}

TEST(ThreadPool, RethrowsAndStaysUsable) {
  ThreadPool pool(2);
  const auto failing = [](std::size_t i) {
    if (i >= 5) throw std::runtime_error(std::to_string(i));
  };
  EXPECT_THROW(pool.parallel_for(100, failing), std::runtime_error);
  std::atomic<int> sum{0};
  pool.parallel_for(10, [&](std::size_t) { ++sum; });
  EXPECT_EQ(sum, 10);
}

TEST(ThreadPool, SubmitReturnsValuesAndErrors) {
  for (const int threads : {0, 2}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.submit([] { return 42; }).get(), 42);
    auto bad = pool.submit([]() -> int { throw std::runtime_error("no"); });
    EXPECT_THROW(bad.get(), std::runtime_error);
  }
}

TEST(ThreadPool, FinishesWhatWasSubmittedBeforeItGoes) {
  std::atomic<int> done{0};
  {
    ThreadPool pool(1);
    for (int i = 0; i < 50; ++i)
      pool.submit([&] { ++done; });
  }
  EXPECT_EQ(done, 50);
}

// A limit on the address space leaves room for few stacks, so the system refuses threads.
TEST(ThreadPool, TheSystemsRefusalEndsNothing) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs the address space that this test takes away";
#endif
  EXPECT_EXIT(
      {
        testing::limit_address_space(100 << 20);
        ThreadPool pool(256);  // 8 MiB of stack each
        std::atomic<int> sum{0};
        pool.parallel_for(1000, [&](std::size_t) { ++sum; });
        _exit(sum == 1000 && pool.size() < 256 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "of 256 threads: a thread cannot be started");
}

TEST(ThreadPool, WithoutOneThreadIsAnError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs the address space that this test takes away";
#endif
  EXPECT_EXIT(
      {
        testing::limit_address_space(32 << 20);
        const ThreadPool all(64);  // the system gives these, also with other tests' stacks kept
        const std::string message = testing::error_of([] { ThreadPool pool(3); });
        std::cerr << message << std::endl;
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "a thread cannot be started: .*ulimit -u");
}

TEST(ThreadPool, AtLeastOneThreadIsAvailable) {
  EXPECT_GE(available_threads(), 1);
}

}  // namespace
}  // namespace antisd::inline core
