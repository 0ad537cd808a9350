#include "core/core_share.h"

#include <gtest/gtest.h>

#include "core/thread_pool.h"

namespace antisd::inline core {
namespace {

TEST(CoreShare, OfProcesses) {
  struct Case {
    int own, processes, together, share;
  };
  const Case cases[] = {
      {8, 1, 0, 8},
      {8, 2, 0, 4},
      {8, 3, 0, 2},
      {8, 8, 0, 1},
      {2, 8, 0, 1},
      {1, 1, 0, 1},
      // Bound to cores of its own, not bound, bound to fewer.
      {8, 8, 64, 8},
      {64, 8, 64, 8},
      {4, 8, 64, 4},
      // A job that has a part of the machine.
      {16, 2, 8, 4},
  };
  for (const Case& c : cases)
    EXPECT_EQ(core_share(c.own, c.processes, c.together), c.share)
        << c.own << " " << c.processes << " " << c.together;
}

TEST(CoreShare, DecidesHowManyThreadsAreAvailable) {
  const int all = available_threads();
  share_cores(2);
  EXPECT_EQ(available_threads(), all < 4 ? 1 : all / 2);
  share_cores(1'000'000);
  EXPECT_EQ(available_threads(), 1);
  share_cores(1);
  EXPECT_EQ(available_threads(), all);
}

}  // namespace
}  // namespace antisd::inline core
