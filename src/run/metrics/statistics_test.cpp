#include "run/metrics/statistics.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antisd::inline run {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Statistics, OfAFewValuesByHand) {
  const std::vector<double> values = {2, 4, 4, 4, 5, 5, 7, 9};
  const Statistics statistics = summarise(values);
  EXPECT_EQ(statistics.count, 8);
  EXPECT_EQ(statistics.mean, 5);
  EXPECT_EQ(statistics.deviation, 2);
  EXPECT_EQ(statistics.min, 2);
  EXPECT_EQ(statistics.max, 9);
}

TEST(Statistics, DeviationSurvivesALargeMean) {
  const std::vector<double> values = {1e9 + 1, 1e9 + 2, 1e9 + 3};
  EXPECT_NEAR(summarise(values).deviation, std::sqrt(2.0 / 3), 1e-12);
}

TEST(Statistics, FloatsAreSummedAsDoubles) {
  const std::vector<float> values(20'000'000, 1.0f);  // an fp32 sum stops at 2^24
  EXPECT_EQ(summarise(values).mean, 1);
}

TEST(Statistics, NoValueAndNanAreNanWithoutExtremes) {
  for (const std::vector<double>& values : {std::vector<double>{}, {1, kNan, 3}, {kNan, 1}}) {
    const Statistics statistics = summarise(values);
    EXPECT_EQ(statistics.count, static_cast<std::int64_t>(values.size()));
    EXPECT_TRUE(std::isnan(statistics.mean) && std::isnan(statistics.deviation));
    EXPECT_TRUE(std::isnan(statistics.min) && std::isnan(statistics.max));
  }
}

TEST(Statistics, InfinitiesKeepTheExtremes) {
  const std::vector<double> values = {-kInfinity, 1, kInfinity};
  EXPECT_TRUE(std::isnan(summarise(values).mean));
  EXPECT_EQ(summarise(values).min, -kInfinity);
  EXPECT_EQ(summarise(values).max, kInfinity);
}

}  // namespace
}  // namespace antisd::inline run
