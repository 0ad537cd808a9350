#include "eval/results/summary.h"

#include <cmath>

#include <gmock/gmock.h>

#include "core/testing.h"
#include "io/atomic_file.h"

namespace antisd::inline eval {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SampleRow row(std::int64_t problem, std::int64_t sample, std::optional<bool> correct,
              bool truncated = false) {
  return {.id = "p" + std::to_string(problem),
          .problem = problem,
          .sample = sample,
          .response = "text",
          .extracted = correct && !truncated ? "4" : "",
          .correct = correct,
          .reason = "",
          .truncated = truncated,
          .tokens = 10 * (sample + 1),
          .settings = "s"};
}

// Two problems, four samples each: 1 of 4 and, with one ungraded, 2 of 3.
std::vector<SampleRow> small_bench() {
  std::vector<SampleRow> rows = {row(0, 0, true),  row(0, 1, false),       row(0, 2, false, true),
                                 row(0, 3, false), row(1, 0, true),        row(1, 1, true),
                                 row(1, 2, false), row(1, 3, std::nullopt)};
  rows[3].extracted = "";  // ended by itself, without an answer
  return rows;
}

TEST(SummariseBench, EqualsHandWork) {
  const BenchSummary bench = summarise_bench(small_bench(), 2, 4);
  EXPECT_EQ(bench.samples, 8);
  EXPECT_EQ(bench.grader_failed, 1);
  EXPECT_NEAR(bench.avg, (1.0 / 4 + 2.0 / 3) / 2, 1e-12);
  EXPECT_NEAR(bench.truncated, 1.0 / 8, 1e-12);
  EXPECT_NEAR(bench.extraction_failed, 1.0 / 8, 1e-12);  // not the truncated, not the ungraded
  EXPECT_NEAR(bench.mean_tokens, 25, 1e-12);
  ASSERT_EQ(bench.pass.size(), 4u);
  EXPECT_NEAR(bench.pass[0], bench.avg, 1e-12);
  // 1 - C(3,2)/C(4,2) = 1/2 and 1 - C(1,2)/C(3,2) = 1.
  EXPECT_NEAR(bench.pass[1], 0.75, 1e-12);
  EXPECT_NEAR(bench.pass[2], (0.75 + 1) / 2, 1e-12);
  EXPECT_NEAR(bench.pass[3], 1, 1e-12);  // the second problem has no four graded samples
  EXPECT_LT(bench.avg_interval.low, bench.avg);
  EXPECT_GT(bench.avg_interval.high, bench.avg);
}

TEST(SummariseBench, OfNothingIsNoFigure) {
  const std::vector<SampleRow> ungraded = {row(0, 0, std::nullopt), row(1, 0, std::nullopt)};
  for (const auto& rows : {std::vector<SampleRow>{}, ungraded}) {
    const BenchSummary bench = summarise_bench(rows, 2, 1);
    EXPECT_TRUE(std::isnan(bench.avg));
    EXPECT_TRUE(std::isnan(bench.avg_interval.low));
    EXPECT_EQ(bench.grader_failed, std::ssize(rows));
  }
}

TEST(EvalSummary, AveragesBenchmarksWithEqualWeight) {
  EvalSummary summary;
  summary.benches.emplace_back(
      "a", BenchSummary{.problems = 30, .avg = 0.2, .avg_interval = {0.1, 0.4}});
  summary.benches.emplace_back(
      "b", BenchSummary{.problems = 500, .avg = 0.6, .avg_interval = {0.5, 0.65}});
  summarise_average(summary);
  EXPECT_NEAR(summary.average, 0.4, 1e-12);
  EXPECT_NEAR(summary.average_interval.low, 0.4 - std::sqrt(0.01 + 0.01) / 2, 1e-12);
  EXPECT_NEAR(summary.average_interval.high, 0.4 + std::sqrt(0.04 + 0.0025) / 2, 1e-12);
  summary.benches.emplace_back("c", BenchSummary{});
  summarise_average(summary);
  EXPECT_TRUE(std::isnan(summary.average));  // a missing value is not 0
}

TEST(EvalSummary, SurvivesItsFile) {
  testing::TemporaryFolder folder;
  EvalSummary summary{.model = "m", .step = 40, .settings = {0.7, 0.95, 32768, 3}};
  summary.benches.emplace_back("aime24", summarise_bench(small_bench(), 2, 4));
  summary.benches.emplace_back("empty", BenchSummary{.problems = 1});
  summarise_average(summary);
  write_summary(folder / "summary.json", summary);
  const EvalSummary read = read_summary(folder / "summary.json");
  EXPECT_EQ(to_json(read), to_json(summary));
  EXPECT_EQ(read.settings, summary.settings);
  EXPECT_EQ(read.step, 40);
  const Json json = to_json(summary);
  EXPECT_TRUE(json["benches"]["empty"]["avg"].is_null());
  EXPECT_TRUE(json["average"].is_null());
  EXPECT_EQ(json["benches"]["aime24"]["pass"]["2"], 0.75);
  EXPECT_EQ(json["benches"]["aime24"]["pass_interval"]["1"],
            json["benches"]["aime24"]["avg_interval"]);
}

TEST(EvalSummary, ToleratesHolesAndRefusesNonsense) {
  const EvalSummary summary = summary_from(
      parse_json(
          R"({"benches":{"a":{"avg":"high","pass":{"1":0.5,"3":1},"avg_interval":[1]},"b":4}})",
          "t"),
      "t");
  ASSERT_EQ(summary.benches.size(), 1u);
  EXPECT_TRUE(std::isnan(summary.benches[0].second.avg));
  EXPECT_THAT(summary.benches[0].second.pass, ElementsAre(0.5));
  EXPECT_FALSE(summary.step);
  for (const char* text : {"[]", "{}", R"({"benches":[]})"})
    EXPECT_THAT(testing::error_of([&] { summary_from(parse_json(text, "t"), "file"); }),
                HasSubstr("file: not the summary"));
}

TEST(SampleRow, SurvivesItsLine) {
  for (const SampleRow& sample : small_bench())
    EXPECT_EQ(sample_row_from(to_json(sample), "t"), sample);
  Json json = to_json(row(0, 0, true));
  json["sample"] = -1;
  EXPECT_THAT(testing::error_of([&] { sample_row_from(json, "a.jsonl:3"); }),
              HasSubstr("a.jsonl:3: not a sample"));
  json.erase("sample");
  EXPECT_THAT(testing::error_of([&] { sample_row_from(json, "x"); }), HasSubstr("x: not a sample"));
  for (const Json& count :
       {Json(1e99), Json(1.5), Json(-1), Json(std::uint64_t{1} << 63), Json("1")}) {
    Json row = to_json(SampleRow{.id = "a"});
    row["sample"] = count;
    EXPECT_THAT(testing::error_of([&] { sample_row_from(row, "x"); }), HasSubstr("x: not a sample"))
        << count;
  }
}

TEST(SummaryTable, ShowsWhatThereIs) {
  EvalSummary summary;
  summary.benches.emplace_back("aime24", summarise_bench(small_bench(), 2, 4));
  summary.benches.emplace_back("bad\x1b[31m", BenchSummary{.problems = 3, .n = 1});
  summarise_average(summary);
  const std::string text = summary_table(summary);
  EXPECT_THAT(text, HasSubstr("pass@4"));
  EXPECT_THAT(text, HasSubstr("45.8"));
  EXPECT_THAT(text, HasSubstr("bad?[31m"));
  EXPECT_THAT(shown_k({}, 10), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(shown_k({1, 5, 64}, 10), ElementsAre(1, 5));
  EXPECT_EQ(shown_k({}, std::numeric_limits<std::int64_t>::max()).size(), 63u);
}

}  // namespace
}  // namespace antisd::inline eval
