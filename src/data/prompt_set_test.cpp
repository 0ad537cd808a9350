#include "data/prompt_set.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "core/testing.h"
#include "core/utf8.h"
#include "data/row_reader.h"
#include "io/atomic_file.h"

namespace antisd::inline data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using testing::error_of;
using ::testing::HasSubstr;
using testing::shared_data;
using ::testing::StartsWith;

class PromptSetTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    write_file_atomically(folder_ / name, text);
    return (folder_ / name).string();
  }
  PromptSet load(const std::string& text, PromptSetOptions options = {}) {
    options.files = {write("rows.jsonl", text)};
    return PromptSet::load(options, &report_);
  }
  std::string error(const std::string& text, PromptSetOptions options = {}) {
    return error_of([&] { load(text, options); });
  }

  testing::TemporaryFolder folder_;
  PromptSetReport report_;
};

TEST_F(PromptSetTest, NativeRows) {
  const PromptSet set = load(
      R"({"id": "a", "problem": "1+1?", "answer": "2", "solution": "count", "source": "us"})"
      "\n\n"
      R"({"prompt": "2+2?", "answer": 4})"
      "\n"
      R"({"id": 7, "prompt": [{"role": "system", "content": "S"}, {"role": "user", "content": "3+3?"}], "answer": [6.5], "solution": null})");
  ASSERT_EQ(set.size(), 3u);
  EXPECT_EQ(set[0].id, "a");
  EXPECT_EQ(set[0].problem, "1+1?");
  EXPECT_EQ(set[0].answer, "2");
  EXPECT_EQ(set[0].solution, "count");
  EXPECT_EQ(set[0].source, "us");
  EXPECT_TRUE(set[0].tests.is_null());
  EXPECT_EQ(set[1].id, "rows-2");
  EXPECT_EQ(set[1].problem, "2+2?");
  EXPECT_EQ(set[1].answer, "4");
  EXPECT_EQ(set[1].solution, std::nullopt);
  EXPECT_EQ(set[1].source, "rows");
  EXPECT_EQ(set[2].id, "7");
  EXPECT_EQ(set[2].problem, "");
  EXPECT_THAT(set[2].messages,
              ElementsAre(ChatMessage{"system", "S"}, ChatMessage{"user", "3+3?"}));
  EXPECT_EQ(set[2].answer, "6.5");
  EXPECT_EQ(prompt_text(set[2]), "3+3?");
  EXPECT_EQ(report_.text(), "3 rows read, 3 kept");
}

TEST_F(PromptSetTest, VerlRows) {
  const PromptSet set = load(
      R"({"data_source": "d", "prompt": [{"content": "q1", "role": "user"}], "ability": "math", "reward_model": {"ground_truth": "[\"34\"]", "style": "rule"}, "extra_info": {"index": 5}})"
      "\n"
      R"({"data_source": "d", "prompt": [{"content": "q2", "role": "user"}], "reward_model": {"ground_truth": "[12,28]"}, "extra_info": {"index": "uuid-1"}})"
      "\n"
      R"({"data_source": "d", "prompt": [{"content": "q3", "role": "user"}], "reward_model": {"ground_truth": {"question": "q3", "solution": "s", "target": "t"}}, "problem": "not this"})"
      "\n"
      R"({"prompt": [{"content": "q4", "role": "user"}], "reward_model": {"ground_truth": "[\"a\", \"b\"]"}})");
  ASSERT_EQ(set.size(), 4u);
  EXPECT_EQ(set[0].id, "rows-5");
  EXPECT_EQ(set[0].answer, "34");
  EXPECT_EQ(set[0].source, "d");
  EXPECT_EQ(set[1].id, "uuid-1");
  EXPECT_EQ(set[1].answer, "[12,28]");  // an interval, not a list of answers
  EXPECT_EQ(set[2].id, "rows-3");
  EXPECT_EQ(set[2].answer, "t");
  EXPECT_EQ(set[2].solution, "s");
  EXPECT_EQ(prompt_text(set[2]), "q3");
  EXPECT_EQ(set[3].answer, R"(["a", "b"])");
  EXPECT_EQ(set[3].source, "rows");
}

TEST_F(PromptSetTest, MapReachesAnyColumn) {
  const PromptSetOptions options{.map = {{"problem", "chat.0.content"},
                                         {"answer", "meta.gold.value"},
                                         {"id", "a.b"},
                                         {"source", "meta.from"}}};
  const PromptSet set = load(
      R"({"a.b": "x1", "chat": [{"role": "user", "content": "q"}], "meta": {"from": "m", "gold": {"value": 3}}, "answer": "no"})",
      options);
  EXPECT_EQ(set[0].id, "x1");
  EXPECT_EQ(set[0].problem, "q");
  EXPECT_EQ(set[0].answer, "3");
  EXPECT_EQ(set[0].source, "m");
  EXPECT_THAT(error(R"({"chat": [], "meta": {}})", options),
              AllOf(HasSubstr("rows.jsonl:1: no column 'a.b', which data.map gives for 'id'"),
                    HasSubstr("the row has: chat, meta")));
  EXPECT_THAT(error("{}", {.map = {{"anwser", "x"}}}), HasSubstr("did you mean 'answer'?"));
  EXPECT_THAT(error("{}", {.map = {{"zzzzzz", "x"}}}), HasSubstr("use problem, answer"));
  EXPECT_THAT(error("{}", {.map = {{"problem", "x"}, {"prompt", "y"}}}), HasSubstr("both"));
}

TEST_F(PromptSetTest, ErrorsNamePlaceColumnsAndRemedy) {
  EXPECT_THAT(
      error("{\"problem\": \"p\", \"answer\": \"a\"}\n{\"text\": \"q\", \"answer\": \"1\"}"),
      EndsWith("rows.jsonl:2: no column 'problem'; the row has: text, answer; name it in "
               "the config: data.map = {problem = \"text\"}"));
  EXPECT_THAT(error(R"({"problem": "q", "label": "1", "m": {"a": 1, "b": 2}})"),
              AllOf(HasSubstr("no column 'answer'; the row has: problem, label, m.a, m.b"),
                    HasSubstr("data.map = {answer = \"label\"}")));
  EXPECT_THAT(error(R"({"problem": "q", "x": 1})"), HasSubstr("{answer = \"THEIR_COLUMN\"}"));
  EXPECT_THAT(error("{}"), HasSubstr("the row has: none"));
  EXPECT_THAT(error(R"({"problem": 3, "answer": ""})"),
              HasSubstr("'problem' is a number, not text"));
  EXPECT_THAT(error(R"({"problem": " ", "answer": ""})"), HasSubstr("the problem is empty"));
  EXPECT_THAT(error(R"({"problem": "p", "answer": true})"), HasSubstr("'answer' is a boolean"));
  EXPECT_THAT(error(R"({"problem": "p", "answer": ["a", "b"]})"),
              HasSubstr("'answer' is an array"));
  EXPECT_THAT(error(R"({"problem": "p", "answer": 123456789012345678901234567890})"),
              HasSubstr("write it as text"));
  EXPECT_THAT(error(R"({"problem": "p", "answer": "", "id": {}})"), HasSubstr("'id' is an object"));
  EXPECT_THAT(error(R"({"problem": "p", "answer": "", "solution": 1})"), HasSubstr("'solution'"));
  EXPECT_THAT(error(R"({"prompt": [], "answer": ""})"), HasSubstr("empty list"));
  EXPECT_THAT(error(R"({"prompt": ["x"], "answer": ""})"), HasSubstr("a message of the prompt"));
  EXPECT_THAT(
      error(R"({"prompt": [{"role": "user", "content": "c", "tool_calls": []}], "answer": ""})"),
      HasSubstr("'tool_calls', which is not used"));
  EXPECT_THAT(error("[1]"), HasSubstr("rows.jsonl:1:"));
  EXPECT_THAT(error("\n"), HasSubstr("the file has no rows"));
  EXPECT_THAT(error_of([] { PromptSet::load({}); }), HasSubstr("no data files"));
  EXPECT_THAT(error_of([] { PromptSet::load({.files = {"/nowhere/x.jsonl"}}); }),
              HasSubstr("/nowhere/x.jsonl"));
  EXPECT_EQ(find_invalid_utf8(
                error("{\"x" + std::string(40, 'x') +
                      "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\": 1}")),
            std::nullopt);
  // A long list of columns is cut.
  Json wide;
  for (int i = 0; i < 100; ++i)
    wide[std::string(200, 'k') + std::to_string(i)] = 1;
  EXPECT_LT(error(to_json_line(wide)).size(), 3500u);
}

TEST_F(PromptSetTest, RawCodeRowsAskForConversion) {
  EXPECT_THAT(
      error(
          R"({"task_id": "T/0", "prompt": "p", "entry_point": "f", "canonical_solution": "s", "test": "t"})"),
      HasSubstr("antisd data convert"));
}

TEST_F(PromptSetTest, AnswerIsOptionalWhereNotRequired) {
  EXPECT_EQ(load(R"({"prompt": "p"})", {.require_answer = false})[0].answer, "");
  EXPECT_EQ(load(R"({"prompt": "p", "answer": null})")[0].answer, "");
  EXPECT_FALSE(load(R"j({"prompt": "p", "tests": {"kind": "asserts", "code": "assert f()"}})j")[0]
                   .tests.is_null());
}

TEST_F(PromptSetTest, TestsAreChecked) {
  const auto tests = [&](const std::string& json) {
    return R"({"problem": "p", "tests": )" + json + "}";
  };
  EXPECT_EQ(
      load(tests(R"({"kind": "stdio", "code": null, "cases": [{"input": "1", "output": "2"}]})"))[0]
          .tests,
      Json::parse(R"({"kind": "stdio", "cases": [{"input": "1", "output": "2"}]})"));
  // As stored in a Parquet file.
  EXPECT_EQ(load(tests(to_json_line(
                Json(R"({"kind": "functional", "code": "c", "entry_point": "f"})"))))[0]
                .tests["entry_point"],
            "f");
  for (const char* bad : {"3", "[]", "{}", R"({"kind": 1})", R"({"kind": "x"})",
                          R"({"kind": "asserts"})", R"({"kind": "functional", "code": "c"})",
                          R"({"kind": "stdio", "cases": []})", R"({"kind": "stdio", "cases": [1]})",
                          R"({"kind": "stdio", "cases": [{"input": "1"}]})", R"("{\"kind\": ")"}) {
    EXPECT_THAT(error(tests(bad)), HasSubstr("rows.jsonl:1: ")) << bad;
  }
}

TEST_F(PromptSetTest, FiltersReportWhatTheyDrop) {
  const std::string text =
      R"({"id": "a", "problem": "Find  X", "answer": "1"})"
      "\n"
      R"({"id": "b", "problem": "find x ", "answer": "2"})"
      "\n"
      R"({"id": "c", "problem": "empty", "answer": " "})"
      "\n"
      R"({"id": "d", "problem": "a problem that is long", "answer": "3"})"
      "\n"
      R"({"id": "e", "problem": "tokens tokens", "answer": "4"})"
      "\n"
      R"({"id": "f", "problem": "code", "tests": {"kind": "asserts", "code": "assert 1"}})";
  EXPECT_EQ(load(text).size(), 6u);
  const PromptSet set = load(text, {.drop_duplicates = true,
                                    .drop_empty_answers = true,
                                    .max_prompt_characters = 20,
                                    .max_prompt_tokens = 1,
                                    .count_tokens = [](const Problem& problem) {
                                      return problem.id == "e" ? std::int64_t{2} : 1;
                                    }});
  std::vector<std::string> ids;
  for (const Problem& problem : set)
    ids.push_back(problem.id);
  EXPECT_THAT(ids, ElementsAre("a", "f"));
  EXPECT_EQ(
      report_.text(),
      "6 rows read, 2 kept; 1 left out: duplicate problem (b); 1 left out: empty answer (c); 1 "
      "left out: prompt over 20 characters (d); 1 left out: prompt over 1 tokens (e)");
  EXPECT_THAT(error(R"({"problem": "p", "answer": ""})", {.drop_empty_answers = true}),
              HasSubstr("no problem is left"));
}

// A row of megabytes is dropped like any long row, without being rendered.
TEST_F(PromptSetTest, AHugeRowIsDroppedAndCounted) {
  std::vector<std::string> counted;
  PromptSetOptions options{.files = {},
                           .map = {},
                           .max_prompt_tokens = 2048,
                           .count_tokens = [&](const Problem& problem) -> std::int64_t {
                             counted.push_back(problem.id);
                             return std::ssize(prompt_text(problem));
                           }};
  const std::string huge(40 << 20, 'x');
  const PromptSet set = load(R"({"id":"a","problem":"1+1?","answer":"2"})"
                             "\n"
                             R"({"id":"b","problem":")" +
                                 huge +
                                 R"(","answer":"2"})"
                                 "\n"
                                 R"({"id":"c","prompt":[{"role":"system","content":")" +
                                 huge +
                                 R"("},{"role":"user","content":"x"}],"answer":"2"})"
                                 "\n",
                             options);
  EXPECT_EQ(set.size(), 1);
  EXPECT_THAT(counted, ElementsAre("a"));
  EXPECT_EQ(report_.text(), "3 rows read, 1 kept; 2 left out: prompt over 2048 tokens (b, c)");
}

TEST_F(PromptSetTest, WhatTheTemplateRefusesNamesTheRow) {
  PromptSetOptions options{.files = {},
                           .map = {},
                           .max_prompt_tokens = 9,
                           .count_tokens = [](const Problem& problem) -> std::int64_t {
                             if (problem.id == "b") throw InputError("no system message, please");
                             return 1;
                           }};
  EXPECT_THAT(
      error(R"({"id":"a","problem":"1","answer":"2"})"
            "\n"
            R"({"id":"b","problem":"1","answer":"2"})",
            options),
      AllOf(HasSubstr("rows.jsonl:2: problem 'b'"), HasSubstr("no system message, please")));
}

TEST_F(PromptSetTest, FingerprintFollowsContentAndOrder) {
  const std::string a = R"({"id": "a", "problem": "p", "answer": "1"})";
  const std::string b = R"({"id": "b", "problem": "q", "answer": "2"})";
  const std::string both = load(a + "\n" + b).fingerprint();
  EXPECT_EQ(both.size(), 16u);
  EXPECT_EQ(load(a + "\n\n" + b + "\n").fingerprint(), both);
  EXPECT_NE(load(b + "\n" + a).fingerprint(), both);
  EXPECT_NE(load(a).fingerprint(), both);
  EXPECT_NE(load(a + "\n" + R"({"id": "b", "problem": "q", "answer": "3"})").fingerprint(), both);
}

TEST_F(PromptSetTest, JsonArraysAndSeveralFiles) {
  const std::string array =
      write("one.json",
            "\n [{\"problem\": \"p\", \"answer\": 1},\n {\"problem\": \"q\", \"answer\": 2}]");
  const std::string lines = write("two.json", "{\"problem\": \"r\", \"answer\": 3}\n");
  const PromptSet set = PromptSet::load({.files = {array, lines}}, &report_);
  ASSERT_EQ(set.size(), 3u);
  EXPECT_EQ(set[1].id, "one-2");
  EXPECT_EQ(set[2].id, "two-1");
  EXPECT_THAT(report_.rows_of_files, ElementsAre(2, 1));
  EXPECT_THAT(error_of([&] {
                PromptSet::load(
                    {.files = {write("x.json", "[{\"problem\": \"p\", \"answer\": \"\"}, 3]")}});
              }),
              HasSubstr("x.json:row 2: a JSON number"));
  EXPECT_THAT(error_of([&] { PromptSet::load({.files = {write("x.json", "[{\"problem\": ")}}); }),
              HasSubstr("not valid JSON"));
}

TEST(RowReader, QuotesInputsThatJsonCannotHold) {
  const std::string line =
      R"({"task_id": "Mbpp/1", "base_input": [[1, "a\"],{"]], "plus_input" : {"x": [99999999999999999999, -Infinity]}, "atol": 0})";
  const Json row = parse_json(quote_evalplus_inputs(line), "line");
  EXPECT_EQ(row["task_id"], "Mbpp/1");
  EXPECT_EQ(row["base_input"], R"([[1, "a\"],{"]])");
  EXPECT_EQ(row["plus_input"], R"({"x": [99999999999999999999, -Infinity]})");
  EXPECT_EQ(row["atol"], 0);
  // Other text is returned unchanged, for the parser to reject.
  for (const char* text : {"", "[1]", "{}", "{\"a\"}", "{\"plus_input\":", "{\"a\": 1, ", "{\"a",
                           "{\"base_input\": [", "{\"a\": {\"base_input\": [1]}}", "}{", "{\"\\"}) {
    const std::string same = text;
    if (same.find("\"base_input\": [") == 1) continue;  // an open list is quoted to its end
    EXPECT_EQ(quote_evalplus_inputs(same), same);
  }
}

TEST(PromptSetRealData, DapoIsTheSameAsJsonlAndParquet) {
  const auto lines = shared_data("train/dapo_math_17k.jsonl");
  const auto parquet = shared_data("parquet/svs_dapo_math_17k.parquet");
  ANTISD_NEEDS_SHARED(lines);
  const PromptSet one = PromptSet::load({.files = {lines.string()}});
  const PromptSet other = PromptSet::load({.files = {parquet.string()}});
  ASSERT_EQ(one.size(), 17917u);
  ASSERT_EQ(other.size(), 17917u);
  for (std::size_t i = 0; i < one.size(); ++i) {
    ASSERT_EQ(other[i].messages.size(), 1u);
    ASSERT_EQ(one[i].problem, prompt_text(other[i]));
    ASSERT_EQ(one[i].answer, other[i].answer);
  }
  EXPECT_EQ(other[728].id, "svs_dapo_math_17k-728");
}

TEST(PromptSetRealData, VerlFiles) {
  ANTISD_NEEDS_SHARED(shared_data("parquet"));
  const PromptSet math = PromptSet::load(
      {.files = {shared_data("parquet/rlvrdecomposed_math_test.parquet").string()}});
  const PromptSet lines = PromptSet::load({.files = {shared_data("train/math_test.jsonl").string()},
                                           .map = {{"answer", "answer_stripped"}}});
  ASSERT_EQ(math.size(), 5000u);
  for (std::size_t i = 0; i < math.size(); ++i) {
    ASSERT_EQ(prompt_text(math[i]), lines[i].problem);
    ASSERT_EQ(math[i].answer, lines[i].answer);
    ASSERT_EQ(math[i].solution, lines[i].solution);
  }
  const PromptSet deepscaler = PromptSet::load(
      {.files = {shared_data("parquet/mcs_deepscaler_train_2000.parquet").string()}});
  EXPECT_EQ(deepscaler[0].id, "mcs_deepscaler_train_2000-13660");
  EXPECT_EQ(deepscaler[0].answer, "- \\frac{1}{4}");
}

TEST(PromptSetRealData, EveryTrainAndBenchFileLoads) {
  for (const char* folder : {"train", "bench"}) {
    ANTISD_NEEDS_SHARED(shared_data(folder));
    for (const auto& entry : std::filesystem::directory_iterator(shared_data(folder))) {
      EXPECT_GT(PromptSet::load({.files = {entry.path().string()}}).size(), 29u) << entry.path();
    }
  }
  PromptSetReport report;
  PromptSet::load(
      {.files = {shared_data("train/math_train.jsonl").string()}, .drop_empty_answers = true},
      &report);
  ASSERT_EQ(report.dropped.size(), 1u);
  EXPECT_THAT(report.dropped[0].examples, ::testing::Contains("math-train-5341"));
}

}  // namespace
}  // namespace antisd::inline data
