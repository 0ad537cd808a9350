#include "report/metric_table.h"

#include <cmath>
#include <random>

#include <gmock/gmock.h>

#include "report/row_fields.h"
#include "report/testing.h"

namespace antisd::inline report {
namespace {

using ::testing::ElementsAre;

TEST(RowFields, TopLevelFieldsAlone) {
  std::vector<std::string> seen;
  const bool whole =
      for_each_field(R"( {"a": 1.5, "b":[1,"]",{"c":2}],"d":{"e":"}"} ,"f\"g":"x\\" , "h":null} )",
                     [&](std::string_view key, std::string_view value) {
                       seen.push_back(std::string(key) + "=" + std::string(value));
                     });
  EXPECT_TRUE(whole);
  EXPECT_THAT(seen, ElementsAre("a=1.5", R"(b=[1,"]",{"c":2}])", R"(d={"e":"}"})", R"(f\"g="x\\")",
                                "h=null"));
}

TEST(RowFields, TextThatIsNoObject) {
  const auto ignore = [](std::string_view, std::string_view) {};
  for (const char* text :
       {"", "[1]", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":[1,2}", "{\"a\":\"x}",
        "{\"a\":1 \"b\":2}", "{a:1}", "{\"a\":1,", "{\"a\":\"\\", "{,}"}) {
    EXPECT_FALSE(for_each_field(text, ignore)) << text;
  }
  EXPECT_TRUE(for_each_field("{}", ignore));
  const std::string deep = "{\"a\":" + std::string(500'000, '[');
  EXPECT_FALSE(for_each_field(deep, ignore));
}

TEST(RowFields, Numbers) {
  EXPECT_EQ(number_of("-1.5e3"), -1500);
  for (const char* text : {"null", "NaN", "nan", "inf", "1e999", "\"1\"", "1x", "", "true"})
    EXPECT_FALSE(number_of(text)) << text;
}

TEST(MetricTable, ColumnsOfRowsThatDiffer) {
  MetricTable table;
  EXPECT_TRUE(table.add(R"({"training/global_step":1,"a":1,"b":2})"));
  EXPECT_TRUE(table.add(R"({"training/global_step":2,"b":3,"b":4,"c":null})"));
  EXPECT_TRUE(table.add(R"({"training/global_step":4,"c":5,"a":6,"text":"x"})"));
  EXPECT_THAT(table.steps(), ElementsAre(1, 2, 4));
  using ::testing::IsNan;
  EXPECT_THAT(table.find("a")->values, ElementsAre(1.0, IsNan(), 6.0));
  EXPECT_THAT(table.find("b")->values, ElementsAre(2.0, 4.0, IsNan()));
  EXPECT_THAT(table.find("c")->values, ElementsAre(IsNan(), IsNan(), 5.0));
  EXPECT_EQ(table.take_first_change(), 1);
  EXPECT_EQ(table.take_first_change(), -1);
}

TEST(MetricTable, AStepAgainTakesThePlaceOfLaterOnes) {
  MetricTable table;
  for (int step = 1; step <= 5; ++step)
    table.add(testing::metrics_row(step, step));
  table.take_first_change();
  table.add(testing::metrics_row(3, 30));
  EXPECT_THAT(table.steps(), ElementsAre(1, 2, 3));
  EXPECT_THAT(table.find("critic/rewards/mean")->values, ElementsAre(1, 2, 30));
  EXPECT_EQ(table.take_first_change(), 3);
}

TEST(MetricTable, LinesThatAreNoRows) {
  MetricTable table;
  for (const char* line : {"", "x", "{}", R"({"a":1})", R"({"training/global_step":-1})",
                           R"({"training/global_step":1.5})", R"({"training/global_step":null})",
                           R"({"training/global_step":1e300})", R"({"training/global_step":1)"})
    EXPECT_FALSE(table.add(line)) << line;
  EXPECT_TRUE(table.steps().empty());
}

TEST(Buckets, WidthIsTheSmallestPowerOfTwo) {
  EXPECT_EQ(bucket_width(0), 1);
  EXPECT_EQ(bucket_width(511), 1);
  EXPECT_EQ(bucket_width(512), 2);
  EXPECT_EQ(bucket_width(10'000), 32);
  EXPECT_LT(1'000'000'000'000'000 / bucket_width(1'000'000'000'000'000), kMaxBuckets);
}

// Compared with a search through all rows for every bucket.
TEST(Buckets, KeepExtremesInTheirOrderAndTheRunningMean) {
  std::mt19937 random(7);
  for (const std::int64_t width : {1, 2, 8, 64}) {
    std::vector<std::int64_t> steps;
    std::vector<double> values;
    for (std::int64_t step = 1; step < 700; ++step) {
      if (random() % 11 == 0) continue;  // missing rows
      steps.push_back(step);
      values.push_back(random() % 7 == 0 ? std::nan("") : static_cast<double>(random() % 1000));
    }
    const std::int64_t from = 3;
    const Buckets buckets = bucketed(steps, values, width, from);
    ASSERT_EQ(buckets.first.size(), static_cast<std::size_t>(steps.back() / width - from + 1));
    for (std::size_t b = 0; b < buckets.first.size(); ++b) {
      const std::int64_t begin = (from + static_cast<std::int64_t>(b)) * width;
      double low = INFINITY, high = -INFINITY, sum = 0;
      std::int64_t low_step = 0, high_step = 0, last = -1;
      for (std::size_t row = 0; row < steps.size(); ++row) {
        if (steps[row] < begin || steps[row] >= begin + width) continue;
        last = steps[row];
        if (values[row] < low) low = values[row], low_step = steps[row];
        if (values[row] > high) high = values[row], high_step = steps[row];
      }
      if (last < 0) {
        EXPECT_TRUE(std::isnan(buckets.mean[b]));
        continue;
      }
      int count = 0;
      for (std::size_t row = 0; row < steps.size(); ++row) {
        if (steps[row] > last || steps[row] <= last - 20 || std::isnan(values[row])) continue;
        sum += values[row];
        ++count;
      }
      EXPECT_NEAR(buckets.mean[b], sum / count, 1e-9);
      if (low > high) {
        EXPECT_TRUE(std::isnan(buckets.first[b]));
        continue;
      }
      EXPECT_EQ(buckets.first[b], low_step <= high_step ? low : high);
      EXPECT_EQ(buckets.second[b], low_step <= high_step ? high : low);
    }
  }
}

}  // namespace
}  // namespace antisd::inline report
