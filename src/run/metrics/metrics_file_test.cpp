#include "run/metrics/metrics_file.h"

#include <cmath>
#include <csignal>
#include <ctime>
#include <fstream>
#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "core/testing.h"
#include "io/atomic_file.h"
#include "io/jsonl.h"

namespace antisd::inline run {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names_of(const MetricSet& metrics) {
  std::vector<std::string> names;
  for (const Metric& metric : metrics.values())
    names.push_back(metric.name);
  return names;
}

// The file's rows without the times at which they were written.
std::string rows_of(const std::filesystem::path& path) {
  return std::regex_replace(read_file(path), std::regex(R"("time":[0-9.]+,)"), "");
}

MetricSet metrics_with(double value) {
  MetricSet metrics;
  metrics.set("actor/pg_loss", value);
  return metrics;
}

TEST(MetricSet, KeepsTheOrderAndTheLastValue) {
  MetricSet metrics;
  metrics.set("b", 1);
  metrics.set("critic/rewards", summarise(std::vector<double>{0, 1}));
  metrics.set("b", 2);
  MetricSet others;
  others.set("critic/rewards/max", 7);
  others.set("last", 8);
  metrics.add(others);
  EXPECT_THAT(names_of(metrics), ElementsAre("b", "critic/rewards/mean", "critic/rewards/max",
                                             "critic/rewards/min", "last"));
  EXPECT_EQ(metrics.find("b"), 2);
  EXPECT_EQ(metrics.find("critic/rewards/max"), 7);
  EXPECT_FALSE(metrics.find("c").has_value());
}

TEST(MetricsFile, WritesOneObjectAStepAtOnce) {
  const testing::TemporaryFolder folder;
  MetricsFile file(folder / "metrics.jsonl");
  MetricSet metrics;
  metrics.set(kStepMetric, 99);  // the step argument wins
  metrics.set("actor/lr", 1e-6);
  metrics.set("actor/pg_loss", std::nan(""));
  metrics.set("antisd/u/max", INFINITY);
  file.write(1, metrics);
  EXPECT_EQ(
      rows_of(folder / "metrics.jsonl"),
      "{\"training/global_step\":1,\"actor/lr\":1e-06,\"actor/pg_loss\":null,\"antisd/u/max\":"
      "null}\n");
  file.write(2, metrics_with(0.1 + 0.2));
  JsonlReader reader(folder / "metrics.jsonl");
  Json row;
  ASSERT_TRUE(reader.next(row) && reader.next(row));
  EXPECT_EQ(row["actor/pg_loss"].get<double>(), 0.1 + 0.2);  // bit for bit
}

TEST(MetricsFile, ResumingCutsLaterRowsAndMendsATornLine) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path path = folder / "metrics.jsonl";
  {
    MetricsFile file(path);
    for (int step = 1; step <= 5; ++step)
      file.write(step, metrics_with(step));
  }
  std::ofstream(path, std::ios::app) << R"({"training/global_step":6,"actor/pg_)";
  const MetricsCut cut = cut_metrics(path, 3);
  EXPECT_EQ(cut.kept, 3);
  EXPECT_EQ(cut.later, 2);
  EXPECT_EQ(cut.broken, 1);
  EXPECT_EQ(cut.last_step, 3);
  MetricsFile(path).write(4, metrics_with(40));
  EXPECT_EQ(rows_of(path),
            "{\"training/global_step\":1,\"actor/pg_loss\":1.0}\n"
            "{\"training/global_step\":2,\"actor/pg_loss\":2.0}\n"
            "{\"training/global_step\":3,\"actor/pg_loss\":3.0}\n"
            "{\"training/global_step\":4,\"actor/pg_loss\":40.0}\n");
}

// A row ends with its brace: cut before it, the line is not JSON; cut after it, only the newline is
// missing.
TEST(MetricsFile, EveryTruncationLeavesTheWholeRows) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path path = folder / "metrics.jsonl";
  {
    MetricsFile file(path);
    for (int step = 1; step <= 3; ++step)
      file.write(step, metrics_with(step));
  }
  const std::string whole = read_file(path);
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    write_file_atomically(path, whole.substr(0, length));
    cut_metrics(path, 100);
    const std::size_t brace = whole.substr(0, length).rfind('}');
    EXPECT_EQ(read_file(path), brace == std::string::npos ? "" : whole.substr(0, brace + 1) + "\n")
        << length;
  }
}

TEST(MetricsFile, ARowWithoutItsLineEndIsKeptWhereItsStepIsDue) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path path = folder / "metrics.jsonl";
  const std::string one = "{\"training/global_step\":1}\n", two = "{\"training/global_step\":2}";
  write_file_atomically(path, one + two);
  EXPECT_EQ(cut_metrics(path, 1).later, 1);
  EXPECT_EQ(read_file(path), one);
  write_file_atomically(path, one + two);
  EXPECT_EQ(cut_metrics(path, 2).broken, 0);
  MetricsFile(path).write(3, metrics_with(3));
  EXPECT_EQ(rows_of(path), one + two + "\n{\"training/global_step\":3,\"actor/pg_loss\":3.0}\n");
}

TEST(MetricsFile, KnowsWhenItWasRemoved) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path path = folder / "metrics.jsonl";
  MetricsFile file(path);
  EXPECT_TRUE(file.is_there());
  std::filesystem::remove(path);
  EXPECT_FALSE(file.is_there());
  write_file_atomically(path, "");  // another file of the same name
  EXPECT_FALSE(file.is_there());
}

TEST(MetricsFile, RepeatedAndDamagedRowsGo) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path path = folder / "metrics.jsonl";
  const std::string one = "{\"training/global_step\":1}\n", two = "{\"training/global_step\":2}\n";
  write_file_atomically(path, one + std::string("\0\0\0\n", 4) + two + one + "[1]\n{\"a\":1}\n" +
                                  "{\"training/global_step\":1.5}\n" + two);
  const MetricsCut cut = cut_metrics(path, 9);
  EXPECT_EQ(read_file(path), one + two);
  EXPECT_EQ(cut.kept, 2);
  EXPECT_EQ(cut.later, 2);
  EXPECT_EQ(cut.broken, 4);
}

TEST(MetricsFile, AMissingFileIsAnEmptyOne) {
  const testing::TemporaryFolder folder;
  EXPECT_EQ(cut_metrics(folder / "metrics.jsonl", 3).last_step, -1);
  EXPECT_FALSE(std::filesystem::exists(folder / "metrics.jsonl"));
  EXPECT_THAT(testing::error_of([&] { MetricsFile file(folder / "none" / "metrics.jsonl"); }),
              HasSubstr("none/metrics.jsonl"));
}

// A full disk, simulated by a file-size limit: a row that does not fit leaves nothing behind.
TEST(MetricsFile, ARowThatTheDiskRefusesLeavesNothing) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path path = folder / "metrics.jsonl";
  MetricsFile file(path);
  file.write(1, metrics_with(1));
  const std::string before = read_file(path);
  struct rlimit limit {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  struct rlimit small = limit;
  small.rlim_cur = before.size() + 10;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = testing::error_of([&] { file.write(2, metrics_with(2)); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, HasSubstr("metrics.jsonl"));
  EXPECT_EQ(read_file(path), before);
  const std::string row = rows_of(path);
  file.write(3, metrics_with(3));
  EXPECT_EQ(rows_of(path), row + "{\"training/global_step\":3,\"actor/pg_loss\":3.0}\n");
}

TEST(MetricsFile, ARowSaysWhenItWasWrittenAlsoAfterItWasAmended) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path path = folder / "metrics.jsonl";
  const std::time_t before = std::time(nullptr);
  MetricsFile(path).write(1, metrics_with(1));
  const double written = *find_metrics(path, 1)->find("time");
  EXPECT_GE(written, static_cast<double>(before));
  EXPECT_LE(written, static_cast<double>(std::time(nullptr) + 1));
  write_file_atomically(path, "{\"training/global_step\":1,\"time\":12.5,\"a\":1.0}\n");
  amend_metrics(path, 1, metrics_with(3));
  EXPECT_EQ(read_file(path),
            "{\"training/global_step\":1,\"time\":12.5,\"a\":1.0,\"actor/pg_loss\":3.0}\n");
}

TEST(AmendMetrics, AddsToARowThatIsThere) {
  testing::TemporaryFolder folder;
  const std::filesystem::path path = folder / "metrics.jsonl";
  MetricSet more;
  more.set("val", 0.5);
  amend_metrics(path, 0, more);  // no file yet
  {
    MetricsFile file(path);
    for (const int step : {1, 2, 3}) {
      MetricSet metrics;
      metrics.set("a", 0.1 * step);
      metrics.set("b", std::nan(""));
      file.write(step, metrics);
    }
  }
  more.set("b", 2);
  amend_metrics(path, 2, more);
  EXPECT_EQ(rows_of(path),
            "{\"training/global_step\":0,\"val\":0.5}\n"
            "{\"training/global_step\":1,\"a\":0.1,\"b\":null}\n"
            "{\"training/global_step\":2,\"a\":0.2,\"b\":2.0,\"val\":0.5}\n"
            "{\"training/global_step\":3,\"a\":0.30000000000000004,\"b\":null}\n");
  EXPECT_EQ(find_metrics(path, 2)->find("val"), 0.5);
  EXPECT_TRUE(std::isnan(*find_metrics(path, 3)->find("b")));
  EXPECT_FALSE(find_metrics(path, 4));
  EXPECT_FALSE(find_metrics(folder / "none", 0));
}

}  // namespace
}  // namespace antisd::inline run
