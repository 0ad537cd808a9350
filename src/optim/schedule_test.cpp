#include "optim/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing.h"

namespace antisd::inline optim {
namespace {

Schedule schedule_of(const std::string& kind, std::int64_t warmup, std::int64_t total) {
  OptimConfig config;
  config.lr = 2;
  config.warmup_steps = warmup;
  config.schedule = kind;
  return make_schedule(config, total);
}

TEST(Schedule, ConstantAfterWarmUp) {
  const Schedule schedule = schedule_of("constant", 4, 10);
  const double expected[] = {0.5, 1, 1.5, 2, 2, 2};
  for (int step = 0; step < 6; ++step)
    EXPECT_DOUBLE_EQ(schedule.at(step), expected[step]);
  EXPECT_EQ(schedule.at(1'000'000), 2);
  EXPECT_EQ(schedule_of("constant", 0, 0).at(0), 2);
}

TEST(Schedule, LinearFallsByEqualParts) {
  const Schedule schedule = schedule_of("linear", 2, 6);
  const double expected[] = {1, 2, 2, 1.5, 1, 0.5, 0, 0};
  for (int step = 0; step < 8; ++step)
    EXPECT_DOUBLE_EQ(schedule.at(step), expected[step]) << step;
}

TEST(Schedule, CosineFallsThroughItsHalfAtTheMiddle) {
  const Schedule schedule = schedule_of("cosine", 2, 8);
  EXPECT_DOUBLE_EQ(schedule.at(1), 2);
  EXPECT_DOUBLE_EQ(schedule.at(2), 2);
  EXPECT_NEAR(schedule.at(4), 1.5, 1e-15);  // cos(60 degrees) = 1/2
  EXPECT_NEAR(schedule.at(5), 1, 1e-15);
  EXPECT_NEAR(schedule.at(6), 0.5, 1e-15);
  EXPECT_GT(schedule.at(7), 0);
  EXPECT_NEAR(schedule.at(8), 0, 1e-15);
  EXPECT_NEAR(schedule.at(80), 0, 1e-15);
}

// Unusual settings give finite rates: a run that is all warm-up, or one that was shortened.
TEST(Schedule, NeverLeavesItsBounds) {
  for (const char* kind : {"constant", "linear", "cosine"}) {
    for (const int warmup : {0, 1, 5, 20}) {
      for (const int total : {0, 1, 5, 10}) {
        const Schedule schedule = schedule_of(kind, warmup, total);
        for (int step = 0; step < 30; ++step) {
          EXPECT_GE(schedule.at(step), 0);
          EXPECT_LE(schedule.at(step), 2);
        }
      }
    }
  }
}

TEST(Schedule, AnUnknownNameIsSaid) {
  EXPECT_THAT(testing::error_of([] { schedule_of("cosin", 0, 1); }),
              ::testing::HasSubstr("optim.schedule"));
}

}  // namespace
}  // namespace antisd::inline optim
