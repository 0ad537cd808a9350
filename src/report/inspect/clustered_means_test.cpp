#include "report/inspect/clustered_means.h"

#include <cmath>

#include <gmock/gmock.h>

namespace antisd::inline report {
namespace {

using ::testing::ElementsAre;

TEST(ClusteredMeans, OneValueAClusterIsTheUsualInterval) {
  ClusteredMeans means;
  const double values[] = {1, 2, 4, 9};  // mean 4, variance 38 / 3
  for (int i = 0; i < 4; ++i)
    means.add(7, 10 - i, values[i]);  // clusters in any order
  const ClusteredMean mean = means.of(7);
  EXPECT_EQ(mean.count, 4);
  EXPECT_EQ(mean.clusters, 4);
  EXPECT_DOUBLE_EQ(mean.mean, 4);
  const double half = 3.18244631 * std::sqrt(38.0 / 3 / 4);
  EXPECT_NEAR(mean.high, 4 + half, 1e-6);
  EXPECT_NEAR(mean.low, 4 - half, 1e-6);
}

TEST(ClusteredMeans, ValuesOfAClusterCountTogether) {
  // Two clusters: {1, 1, 1, 1} and {3, 3}: mean 10/6, residual sums 4 (1 - 10/6) and 2 (3 - 10/6).
  ClusteredMeans means;
  for (int i = 0; i < 4; ++i)
    means.add(1, 0, 1);
  means.add(1, 5, 3);
  means.add(1, 5, 3);
  const ClusteredMean mean = means.of(1);
  const double residual = 8.0 / 3, variance = 2.0 / 1 * 2 * residual * residual / 36;
  EXPECT_NEAR(mean.mean, 5.0 / 3, 1e-12);
  EXPECT_NEAR(mean.high - mean.mean, 12.7062047 * std::sqrt(variance), 1e-5);

  means.merge_clusters();
  EXPECT_EQ(means.of(1).clusters, 1);
  EXPECT_EQ(means.of(1).count, 6);
  EXPECT_TRUE(std::isnan(means.of(1).low));
  EXPECT_EQ(means.of(2).count, 0);
  EXPECT_TRUE(std::isnan(means.of(2).mean));
  means.add(-4, 0, 1);
  EXPECT_THAT(means.keys(), ElementsAre(-4, 1));
}

}  // namespace
}  // namespace antisd::inline report
