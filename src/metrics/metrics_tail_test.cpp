#include "metrics/metrics_tail.h"

#include <fstream>

#include <gtest/gtest.h>

#include "core/testing.h"
#include "metrics/metrics_file.h"

namespace antisd {
namespace {

TEST(MetricsTail, GivesEachRowOnceAndWaitsForTornOnes) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  MetricsTail tail(path);
  EXPECT_TRUE(tail.read().empty());
  std::ofstream file(path);
  file << "{\"a\":1}\n{\"a\":2}\n{\"a\":" << std::flush;
  EXPECT_EQ(tail.read().size(), 2u);
  EXPECT_TRUE(tail.read().empty());
  file << "3}\nnot a row\n{\"a\":4}\n" << std::flush;
  const std::vector<Json> rows = tail.read();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["a"], 3);
  EXPECT_EQ(rows[1]["a"], 4);
  EXPECT_EQ(tail.restarts(), 0);
}

TEST(MetricsTail, StartsAgainWhenAResumeCutsRows) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  MetricsTail tail(path);
  {
    MetricsFile file(path);
    for (int step = 1; step <= 3; ++step)
      file.write(step, {});
  }
  EXPECT_EQ(tail.read().size(), 3u);
  cut_metrics(path, 2);
  EXPECT_EQ(tail.read().size(), 2u);
  EXPECT_EQ(tail.restarts(), 1);
}

}  // namespace
}  // namespace antisd
