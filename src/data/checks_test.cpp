#include "data/checks.h"

#include <fstream>

#include <gmock/gmock.h>

#include "core/testing.h"
#include "data/overlap.h"

namespace antisd::inline data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::shared_data;

constexpr const char* kTrain =
    R"({"id": "t1", "problem": "Alice has three red apples and Bob takes one of them away.", "answer": "2"})"
    "\n"
    R"({"id": "t2", "problem": "alice has three  red apples and bob takes one of them away.", "answer": "3"})"
    "\n"
    R"({"id": "t3", "problem": "What is seven?", "answer": ""})"
    "\n"
    R"({"id": "t3", "problem": "Sum the numbers one two three four five six seven eight nine ten, please.", "answer": "55"})"
    "\n"
    R"j({"id": "t5", "problem": "code", "tests": {"kind": "asserts", "code": "assert f()"}})j"
    "\n";
constexpr const char* kBench =
    R"({"id": "b1", "problem": "ALICE has three red apples and Bob takes one of them away.", "answer": "2"})"
    "\n"
    R"({"id": "b2", "problem": "sum the numbers one two three four five six seven eight nine eleven", "answer": "56"})"
    "\n"
    R"({"id": "b3", "problem": "What is seven", "answer": "7"})"
    "\n"
    R"({"id": "b4", "problem": "Nothing of this can be found anywhere else in the training rows at all.", "answer": "0"})"
    "\n";

class ChecksTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  testing::TemporaryFolder folder_;
};

TEST_F(ChecksTest, FindsWhatIsWrong) {
  const DataReport report =
      check_data({write("train.jsonl", kTrain)},
                 {.against = {write("bench.jsonl", kBench)}, .max_prompt_characters = 60});
  EXPECT_EQ(report.rows, 5);
  EXPECT_EQ(report.duplicates.count, 1);
  EXPECT_THAT(report.duplicates.examples, ElementsAre("t2 = t1"));
  EXPECT_EQ(report.conflicting_answers.count, 1);
  EXPECT_THAT(report.repeated_ids.examples, ElementsAre("t3"));
  EXPECT_THAT(report.empty_answers.examples, ElementsAre("t3"));
  EXPECT_EQ(report.empty_answers.count, 1);  // a row with tests needs no answer
  EXPECT_EQ(report.long_prompts.count, 1);
  EXPECT_EQ(report.longest_prompt, 73);
  ASSERT_EQ(report.overlaps.size(), 1u);
  const BenchmarkOverlap& overlap = report.overlaps[0];
  EXPECT_EQ(overlap.problems, 4);
  EXPECT_EQ(overlap.exact, 1);
  EXPECT_EQ(overlap.near, 1);
  EXPECT_EQ(overlap.rows, 3);  // t1, t2 and the second t3
  ASSERT_EQ(overlap.matches.size(), 2u);
  EXPECT_EQ(overlap.matches[0].benchmark_id, "b1");
  EXPECT_EQ(overlap.matches[0].row_id, "t1");
  EXPECT_TRUE(overlap.matches[0].exact);
  // 13 words, 9 5-grams, of which all but the last occur in the row.
  EXPECT_EQ(overlap.matches[1].benchmark_id, "b2");
  EXPECT_DOUBLE_EQ(overlap.matches[1].containment, 8.0 / 9.0);
  EXPECT_FALSE(report.clean());
  EXPECT_THAT(report.text(), HasSubstr("duplicate problems     1   t2 = t1\n"));
  EXPECT_THAT(report.text(), HasSubstr("(4 problems): 1 exact, 1 near"));
  const Json json = report.to_json();
  EXPECT_EQ(json["rows"], 5);
  EXPECT_EQ(json["duplicates"]["examples"], Json({"t2 = t1"}));
  EXPECT_EQ(json["overlaps"][0]["matches"][1]["row_id"], "t3");
}

TEST_F(ChecksTest, CleanDataAndTokenCounts) {
  const std::string file = write("rows.jsonl", R"({"id": "a", "problem": "p q", "answer": "1"})");
  EXPECT_TRUE(check_data({file}).clean());
  const DataReport report = check_data(
      {file},
      {.max_prompt_tokens = 3, .count_tokens = [](const Problem&) { return std::int64_t{4}; }});
  EXPECT_EQ(report.long_prompts.count, 1);
  EXPECT_EQ(report.long_limit, "3 tokens");
  EXPECT_THAT(report.overlaps, IsEmpty());
}

TEST_F(ChecksTest, SeveralFilesCountAsOne) {
  const std::string one = write("one.jsonl", R"({"problem": "same", "answer": "1"})");
  const std::string two = write("two.jsonl", R"({"problem": "Same", "answer": "1"})");
  const DataReport report = check_data({one, two});
  EXPECT_THAT(report.duplicates.examples, ElementsAre("two-1 = one-1"));
  EXPECT_EQ(report.conflicting_answers.count, 0);
  EXPECT_EQ(report.files[1].second, 1);
}

TEST(Overlap, ShortProblemsAreOnlyFoundExactly) {
  OverlapIndex index({"one two three four five six"}, 0.6);
  index.add("zero one two three four five six seven");
  EXPECT_EQ(index.best(0).row, -1);
  index.add(" One two\nthree four five six");
  EXPECT_TRUE(index.best(0).exact);
  EXPECT_EQ(index.best(0).row, 1);
  EXPECT_EQ(index.rows_found(), 1);
}

// Brute-force figures of a short Python script over the same files: casefold, split and join for
// the exact ones; the data folder's notes for the near ones ("about 25 of 40").
TEST(ChecksRealData, KnownOverlaps) {
  const auto dapo = shared_data("train/dapo_math_17k.jsonl");
  ANTISD_NEEDS_SHARED(dapo);
  CheckOptions options;
  for (const char* name :
       {"aime24", "aime25", "aime26", "hmmt_feb25", "minerva_math", "math500", "amc23"}) {
    options.against.push_back(shared_data(fmt::format("bench/{}.jsonl", name)).string());
  }
  const DataReport report = check_data({dapo.string()}, options);
  EXPECT_EQ(report.rows, 17917);
  EXPECT_EQ(report.duplicates.count, 17917 - 17186);
  EXPECT_EQ(report.empty_answers.count, 0);
  const auto& overlaps = report.overlaps;
  for (const int none : {0, 1, 3, 4})
    EXPECT_THAT(overlaps[none].matches, IsEmpty()) << none;
  ASSERT_EQ(overlaps[2].matches.size(), 1u);
  EXPECT_EQ(overlaps[2].matches[0].benchmark_id, "aime2026-I-1");
  EXPECT_EQ(overlaps[2].matches[0].row_id, "dapo-728");
  EXPECT_TRUE(overlaps[2].matches[0].exact);
  EXPECT_EQ(overlaps[5].exact, 4);
  EXPECT_EQ(overlaps[6].exact, 5);
  EXPECT_EQ(overlaps[6].exact + overlaps[6].near, 25);
}

}  // namespace
}  // namespace antisd::inline data
