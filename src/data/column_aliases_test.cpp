#include "data/column_aliases.h"

#include <gmock/gmock.h>

#include "core/testing.h"
#include "data/problem.h"
#include "data/row_reader.h"

namespace antisd::inline data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::shared_data;

struct ParsedRow {
  Problem problem;
  std::vector<std::string> notes;
};

ParsedRow parsed(Json row, const ColumnMap& map = {}) {
  ProblemParser parser(map);
  Problem problem = parser.parse(row, "rows:1", "rows", 1);
  return {std::move(problem), parser.notes()};
}

TEST(ColumnAliases, UsualNamesAreRead) {
  for (const char* name : {"question", "query", "instruction", "Problem", "Question"}) {
    const ParsedRow row = parsed({{name, "1+1?"}, {"final_answer", 2}});
    EXPECT_EQ(row.problem.problem, "1+1?");
    EXPECT_EQ(row.problem.answer, "2");
    EXPECT_THAT(row.notes, ElementsAre("rows: final_answer is read as answer",
                                       std::string("rows: ") + name + " is read as problem"));
  }
  for (const char* name : {"ground_truth", "expected_answer", "Answer"})
    EXPECT_EQ(parsed({{"question", "q"}, {name, "7"}}).problem.answer, "7");
}

TEST(ColumnAliases, OurOwnNamesNeedNoNote) {
  const ParsedRow row = parsed({{"problem", "p"}, {"question", "other"}, {"answer", "1"}});
  EXPECT_EQ(row.problem.problem, "p");
  EXPECT_THAT(row.notes, IsEmpty());
}

TEST(ColumnAliases, SeveralCandidatesAreAnError) {
  EXPECT_THAT(error_of([] {
                parsed({{"question", "a"}, {"query", "b"}, {"answer", "1"}});
              }),
              AllOf(HasSubstr("rows:1"), HasSubstr("question, query"), HasSubstr("data.map")));
  EXPECT_THAT(error_of([] {
                parsed({{"problem", "p"}, {"final_answer", "1"}, {"ground_truth", "2"}});
              }),
              HasSubstr("final_answer, ground_truth"));
  EXPECT_THAT(error_of([] {
                parsed({{"instruction", "Add."}, {"input", "1 2"}, {"answer", "3"}});
              }),
              HasSubstr("instruction, input"));
  // Equal values are no question.
  EXPECT_EQ(parsed({{"problem", "p"}, {"final_answer", "1"}, {"ground_truth", "1"}}).problem.answer,
            "1");
}

TEST(ColumnAliases, TheMapWins) {
  const ParsedRow row =
      parsed({{"question", "a"}, {"query", "b"}, {"answer", "1"}}, {{"problem", "query"}});
  EXPECT_EQ(row.problem.problem, "b");
  EXPECT_THAT(row.notes, IsEmpty());
  // A mapped answer is taken as it is.
  EXPECT_EQ(
      parsed({{"problem", "p"}, {"answer", "x\n#### 3"}}, {{"answer", "answer"}}).problem.answer,
      "x\n#### 3");
  // One column for both.
  const ParsedRow both =
      parsed({{"problem", "p"}, {"solution", "it is 3"}}, {{"answer", "solution"}});
  EXPECT_EQ(both.problem.answer, "it is 3");
  EXPECT_EQ(both.problem.solution, "it is 3");
}

TEST(ColumnAliases, AnswersInsideSolutions) {
  EXPECT_EQ(answer_after_marks("so\n#### -1,234.5 \n"), "-1234.5");
  EXPECT_EQ(answer_after_marks("#### (1,2)"), "(1,2)");
  EXPECT_EQ(answer_after_marks("#### 12,34"), "12,34");
  EXPECT_EQ(answer_after_marks("a #### 3"), std::nullopt);
  EXPECT_EQ(answer_after_marks("#### 3\nand more"), std::nullopt);
  EXPECT_EQ(answer_after_marks("####"), std::nullopt);
  EXPECT_EQ(boxed_answer(R"(first \boxed{1}, then $\boxed{\frac{1}{\{2\}}}$.)"),
            R"(\frac{1}{\{2\}})");
  EXPECT_EQ(boxed_answer(R"($\boxed 2$)"), "2");
  EXPECT_EQ(boxed_answer(R"(\boxed{1} and \boxed{2)"), "1");
  EXPECT_EQ(boxed_answer("none"), std::nullopt);
  EXPECT_THAT(error_of([] {
                parsed({{"problem", "p"}, {"solution", "no box"}});
              }),
              HasSubstr("no column 'answer'"));
}

// The rows as their authors publish them, made from the native files, against the native answers.
TEST(ColumnAliases, Gsm8kAsItIsPublished) {
  const auto file = shared_data("bench/gsm8k_train.jsonl");
  ANTISD_NEEDS_SHARED(file);
  RowReader reader(file);
  std::int64_t rows = 0;
  for (Json row; reader.next(row); ++rows) {
    const ParsedRow read = parsed({{"question", row["problem"]}, {"answer", row["solution"]}});
    ASSERT_EQ(read.problem.answer, row["answer"].get<std::string>()) << reader.where();
    ASSERT_EQ(read.problem.solution, row["solution"].get<std::string>());
  }
  EXPECT_EQ(rows, 7473);
}

TEST(ColumnAliases, MathAsItIsPublished) {
  const auto file = shared_data("train/math_train.jsonl");
  ANTISD_NEEDS_SHARED(file);
  RowReader reader(file);
  std::int64_t rows = 0, equal = 0;
  for (Json row; reader.next(row); ++rows) {
    const ParsedRow read = parsed({{"problem", row["problem"]}, {"solution", row["solution"]}});
    equal += read.problem.answer == row["answer"].get<std::string>();
  }
  EXPECT_EQ(equal, rows);
  EXPECT_GT(rows, 7000);
}

TEST(ColumnAliases, VerlsParquetNeedsNone) {
  const auto file = shared_data("parquet/mcs_deepscaler_train_2000.parquet");
  ANTISD_NEEDS_SHARED(file);
  RowReader reader(file);
  ProblemParser parser;
  for (Json row; reader.next(row);) {
    const std::string truth = row["reward_model"]["ground_truth"].get<std::string>();
    ASSERT_EQ(parser.parse(row, reader.where(), "x", 1).answer, truth);
  }
  EXPECT_THAT(parser.notes(), IsEmpty());
}

}  // namespace
}  // namespace antisd::inline data
