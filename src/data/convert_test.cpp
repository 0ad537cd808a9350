#include "data/convert.h"

#include <fstream>

#include <gmock/gmock.h>

#include "core/error.h"
#include "core/testing.h"
#include "data/prompt_set.h"
#include "data/row_reader.h"

namespace antisd::inline data {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::shared_data;

class ConvertTest : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  static std::vector<Json> rows(const std::filesystem::path& path) {
    std::vector<Json> all;
    RowReader reader(path);
    for (Json row; reader.next(row);)
      all.push_back(row);
    return all;
  }
  testing::TemporaryFolder folder_;
};

TEST_F(ConvertTest, NativeRowsKeepAllColumns) {
  const auto input =
      write("in.jsonl",
            R"({"id": "a", "problem": "p", "answer": "1", "level": 3, "extra": {"x": [1, 2]}})"
            "\n"
            R"({"id": "b", "problem": "é\n", "answer": "2", "level": 4, "extra": {"x": []}})"
            "\n");
  const ConvertResult there = convert_data(input, folder_ / "out.parquet");
  EXPECT_EQ(there.rows_read, 2);
  EXPECT_EQ(there.rows_written, 2);
  EXPECT_EQ(rows(folder_ / "out.parquet"), rows(input));
  convert_data(folder_ / "out.parquet", folder_ / "back.jsonl");
  EXPECT_EQ(rows(folder_ / "back.jsonl"), rows(input));
}

TEST_F(ConvertTest, JsonArrayToLines) {
  const auto input = write("in.json", R"([{"problem": "p", "answer": "1"}, {"problem": "q"}])");
  convert_data(input, folder_ / "out.jsonl");
  std::ifstream file(folder_ / "out.jsonl");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, "{\"problem\":\"p\",\"answer\":\"1\"}\n{\"problem\":\"q\"}\n");
}

TEST_F(ConvertTest, CodeRowsSurviveParquet) {
  const auto input = write(
      "in.jsonl",
      R"j({"problem": "P", "tests": {"inputs": ["1"], "outputs": ["2"]}})j"
      "\n"
      R"j({"problem": "Q", "tests": {"functional": "def check(candidate):\n    assert candidate()\n\ncheck(f)"}})j"
      "\n"
      R"j({"id": "s", "problem": "no tests", "sample_tests": [], "starter_code": ""})j"
      "\n");
  const ConvertResult result = convert_data(input, folder_ / "out.parquet");
  EXPECT_EQ(result.rows_read, 3);
  EXPECT_EQ(result.rows_written, 2);
  EXPECT_EQ(result.without_tests, 1);
  convert_data(input, folder_ / "direct.jsonl");
  convert_data(folder_ / "out.parquet", folder_ / "back.jsonl");
  const PromptSet direct = PromptSet::load({.files = {(folder_ / "direct.jsonl").string()}});
  const PromptSet parquet = PromptSet::load({.files = {(folder_ / "out.parquet").string()}});
  const PromptSet back = PromptSet::load({.files = {(folder_ / "back.jsonl").string()}});
  EXPECT_EQ(direct[1].tests["entry_point"], "f");
  EXPECT_EQ(direct.fingerprint(), parquet.fingerprint());
  EXPECT_EQ(direct.fingerprint(), back.fingerprint());
  EXPECT_TRUE(rows(folder_ / "back.jsonl")[0]["tests"].is_object());
}

TEST_F(ConvertTest, RecordsHowManyChecksASolutionReaches) {
  std::string text;
  for (int i = 0; i < 600; ++i) {
    text += fmt::format(
        R"j({{"task_id": {}, "text": "t", "code": "def f(): return {}", "test_list": ["assert f()"]}})j"
        "\n",
        i, i);
  }
  text += R"j({"problem": "P", "solutions": "s", "tests": {"inputs": ["1"], "outputs": ["2"]}})j";
  const auto input = write("in.jsonl", text);
  // Replaces the sandbox: solutions whose number is a multiple of 7 fail their tests.
  const auto count = [](const std::string& solution, const Json& tests) -> std::optional<int> {
    EXPECT_EQ(tests["names"], Json({{"f", "function"}}));
    const int number = std::stoi(solution.substr(solution.rfind(' ')));
    return number % 7 == 0 ? std::nullopt : std::optional(number);
  };
  for (const char* name : {"out.jsonl", "out.parquet"}) {
    const ConvertResult result =
        convert_data(input, folder_ / name, {.count_checks = count, .threads = 3});
    EXPECT_EQ(result.rows_written, 601);
    EXPECT_EQ(result.counted, 600 - 86);
    EXPECT_EQ(result.failed_solutions, 86);
    const PromptSet set = PromptSet::load({.files = {(folder_ / name).string()}});
    for (std::size_t i = 0; i < 600; ++i) {
      EXPECT_EQ(set[i].id, fmt::format("Mbpp/{}", i));
      EXPECT_EQ(set[i].tests.value("checks", 0), i % 7 == 0 ? 0 : static_cast<int>(i));
    }
    EXPECT_FALSE(set[600].tests.contains("checks")) << "stdio";
  }
}

TEST_F(ConvertTest, VerlAndMappedRowsBecomeNative) {
  const char* const verl =
      R"({"data_source": "d", "prompt": [{"role": "user", "content": "q"}], "ability": "math", "reward_model": {"ground_truth": "5"}, "extra_info": {"index": 9}})";
  const auto input = write("in.jsonl", verl);
  convert_data(input, folder_ / "out.jsonl");
  EXPECT_EQ(
      rows(folder_ / "out.jsonl")[0],
      Json::parse(
          R"({"id": "in-9", "prompt": [{"role": "user", "content": "q"}], "answer": "5", "source": "d"})"));
  convert_data(input, folder_ / "kept.jsonl", {.rows = ConvertOptions::Rows::kKeep});
  EXPECT_EQ(rows(folder_ / "kept.jsonl")[0], Json::parse(verl));
  const auto other = write("other.jsonl", R"({"question": "q", "gold": 3})");
  convert_data(other, folder_ / "mapped.jsonl",
               {.map = {{"problem", "question"}, {"answer", "gold"}}});
  EXPECT_EQ(rows(folder_ / "mapped.jsonl")[0],
            Json::parse(R"({"id": "other-1", "problem": "q", "answer": "3", "source": "other"})"));
}

TEST_F(ConvertTest, RefusesWhatItCannotDo) {
  const auto input = write("in.jsonl", "{\"a\": 1}\n");
  const auto there = write("there.jsonl", "old");
  EXPECT_THAT(error_of([&] { convert_data(input, there); }), HasSubstr("exists already"));
  convert_data(input, there, {.force = true});
  EXPECT_EQ(rows(there)[0]["a"], 1);
  EXPECT_THAT(error_of([&] { convert_data(input, folder_ / "x.ods"); }),
              HasSubstr("ending '.ods'"));
  EXPECT_THAT(error_of([&] {
                convert_data(input, folder_ / "x.jsonl", {.rows = ConvertOptions::Rows::kCode});
              }),
              HasSubstr("not a row of a known code data set; it has: a"));
  EXPECT_THAT(error_of([&] { convert_data(write("e.jsonl", ""), folder_ / "x.jsonl"); }),
              HasSubstr("no rows"));
  EXPECT_THAT(error_of([&] { convert_data(write("e.jsonl", ""), folder_ / "x.parquet"); }),
              HasSubstr("no rows"));
  EXPECT_THAT(
      error_of([&] { convert_data(write("b.jsonl", "{\"a\": 1}\n{"), folder_ / "x.jsonl"); }),
      HasSubstr("b.jsonl:2:"));
  EXPECT_THAT(error_of([&] {
                convert_data(
                    write("s.jsonl", R"({"problem": "p", "sample_tests": [], "starter_code": ""})"),
                    folder_ / "x.jsonl");
              }),
              HasSubstr("none of the rows has tests"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x.jsonl"));  // no partial file
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x.parquet"));
}

TEST_F(ConvertTest, ShowsRowsAsTheTrainerSeesThem) {
  const auto input = write("in.jsonl",
                           "{\"prompt\": \"p\", \"answer\": 2, \"junk\": 1}\n{\"problem\": "
                           "\"q\"}\n{\"problem\": \"r\"}\n");
  std::vector<Json> shown;
  EXPECT_EQ(show_data(input, {.limit = 2}, [&](const Json& row) { shown.push_back(row); }), 2);
  EXPECT_EQ(shown[0],
            Json::parse(R"({"id": "in-1", "problem": "p", "answer": "2", "source": "in"})"));
  EXPECT_EQ(shown[1]["answer"], "");
  EXPECT_EQ(show_data(input, {}, [](const Json&) {}), 3);
}

TEST_F(ConvertTest, RealRoundTrip) {
  const auto dapo = shared_data("train/dapo_math_17k.jsonl");
  ANTISD_NEEDS_SHARED(dapo);
  EXPECT_EQ(convert_data(dapo, folder_ / "dapo.parquet").rows_written, 17917);
  EXPECT_EQ(PromptSet::load({.files = {(folder_ / "dapo.parquet").string()}}).fingerprint(),
            PromptSet::load({.files = {dapo.string()}}).fingerprint());
}

}  // namespace
}  // namespace antisd::inline data
