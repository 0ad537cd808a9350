// Public forms of math and code rows, written here in small, and what they are read as.
#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>

#include "core/error.h"
#include "core/testing.h"
#include "data/code_rows.h"
#include "data/problem.h"

namespace antisd::inline data {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;

std::optional<Json> converted(const Json& row) {
  EXPECT_TRUE(is_raw_code_row(row));
  return native_code_row(row, "f:3", "stem", "stem-3");
}

Problem read_row(Json row) {
  return ProblemParser().parse(row, "f:3", "f", 3);
}

const Json kChat = {{{"role", "user"}, {"content", "Print the sum."}}};

TEST(InputOutputRows, AppsAndTacoReadStandardInput) {
  const Json row = {{"problem_id", 7},
                    {"question", "Print the sum."},
                    {"solutions", R"j(["print(sum(map(int, input().split())))"])j"},
                    {"input_output", R"({"inputs": ["1 2\n", ["3 4", "5"]],)"
                                     R"( "outputs": ["3\n", ["7"]]})"},
                    {"starter_code", ""}};
  const Json native = converted(row).value();
  EXPECT_EQ(native["id"], "7");
  EXPECT_EQ(native["problem"], "Print the sum.");
  EXPECT_EQ(native["solution"], "print(sum(map(int, input().split())))");
  EXPECT_EQ(native["tests"], Json::parse(R"({"kind": "stdio", "cases": [
      {"input": "1 2\n", "output": "3\n"}, {"input": "3 4\n5\n", "output": "7\n"}]})"));
  Json copy = native;
  EXPECT_EQ(read_row(copy).tests["kind"], "stdio");
}

// The tests of a function run here, with a right and with a wrong program.
TEST(InputOutputRows, AppsFunctionsAreCalled) {
  if (std::system("python3 -IS -c pass >/dev/null 2>&1") != 0) GTEST_SKIP() << "no python3";
  const Json row = {
      {"question", "Add."},
      {"input_output",
       {{"fn_name", "add"}, {"inputs", {{1, 2}, {{1}, {2}}}}, {"outputs", {{3}, {{1, 2}}}}}},
      {"starter_code", "class Solution:\n    def add(self, a, b):\n"}};
  const Json tests = converted(row).value()["tests"];
  EXPECT_EQ(tests["entry_point"], "Solution().add");
  const auto passes = [&](const std::string& body) {
    const testing::TemporaryFolder folder;
    std::ofstream(folder / "program.py")
        << "class Solution:\n    def add(self, a, b):\n        return " << body << "\n"
        << tests["code"].get<std::string>() << "check(Solution().add)\n";
    return std::system(
        ("python3 -IS " + (folder / "program.py").string() + " 2>/dev/null").c_str());
  };
  EXPECT_EQ(passes("a + b"), 0);
  EXPECT_NE(passes("b + a"), 0);  // of lists that is another order
}

TEST(InputOutputRows, VerlsAndDolcisGroundTruthMayBeTests) {
  const Json stdio =
      converted({{"data_source", "lab"},
                 {"prompt", kChat},
                 {"ability", "code"},
                 {"reward_model", {{"ground_truth", R"({"inputs": ["1"], "outputs": ["2"]})"}}}})
          .value();
  EXPECT_EQ(stdio["prompt"], kChat);
  EXPECT_EQ(stdio["tests"]["cases"][0]["output"], "2");
  for (const Json& truth : {Json(R"(["assert f(1) == 2", "assert f(2) == 3"])"),
                            Json({R"(["assert f(1) == 2", "assert f(2) == 3"])"}),
                            Json({"assert f(1) == 2", "assert f(2) == 3"})}) {
    const Json native =
        converted({{"messages", kChat}, {"ground_truth", truth}, {"dataset", "code"}}).value();
    EXPECT_EQ(native["prompt"], kChat);
    EXPECT_EQ(native["tests"]["code"], "assert f(1) == 2\nassert f(2) == 3\n");
  }
}

TEST(InputOutputRows, DolcisMathRowsAreRead) {
  const Problem problem =
      read_row({{"messages", kChat}, {"ground_truth", {"34"}}, {"dataset", {"math"}}});
  ASSERT_EQ(problem.messages.size(), 1u);
  EXPECT_EQ(problem.messages[0].content, "Print the sum.");
  EXPECT_EQ(problem.answer, "34");
  EXPECT_EQ(read_row({{"prompt", "1+1?"}, {"ground_truth", "2"}, {"dataset", "math"}}).answer, "2");
}

TEST(InputOutputRows, OtherPublicMathFormsAreRead) {
  const Problem gsm8k = read_row({{"question", "q"}, {"answer", "6 * 7\n#### 42"}});
  EXPECT_EQ(gsm8k.answer, "42");
  const Problem math = read_row({{"problem", "q"},
                                 {"level", "Level 1"},
                                 {"type", "Algebra"},
                                 {"solution", "So \\boxed{\\frac{1}{2}}."}});
  EXPECT_EQ(math.answer, "\\frac{1}{2}");
  const Json talk = {{{"role", "user"}, {"content", "q"}},
                     {{"role", "assistant"}, {"content", "\\boxed{3}"}}};
  const Problem numina = read_row(
      {{"source", "olympiads"}, {"problem", "q"}, {"solution", "\\boxed{3}"}, {"messages", talk}});
  EXPECT_EQ(numina.answer, "3");
  EXPECT_EQ(numina.problem, "q");
  const Problem open_r1 = read_row({{"problem", "q"},
                                    {"solution", "s"},
                                    {"answer", "5"},
                                    {"generations", {"a", "b"}},
                                    {"messages", talk}});
  EXPECT_EQ(open_r1.answer, "5");
  // A chat that the assistant ends is no question.
  EXPECT_THAT(error_of([&] {
                read_row({{"messages", talk}, {"ground_truth", "3"}});
              }),
              HasSubstr("no column 'problem'"));
}

TEST(InputOutputRows, TwoAnswersThatDifferAreAnError) {
  Json row = {{"prompt", kChat}, {"answer", "5"}, {"reward_model", {{"ground_truth", "6"}}}};
  EXPECT_THAT(error_of([&] { read_row(row); }),
              AllOf(HasSubstr("f:3"), HasSubstr("'5'"), HasSubstr("'6'"), HasSubstr("data.map")));
  row["answer"] = "so\n#### 6";
  EXPECT_EQ(read_row(row).answer, "6");
}

TEST(InputOutputRows, BrokenTestsNameTheirPlace) {
  const auto problem = [](const Json& input_output) {
    return error_of([&] { converted({{"question", "q"}, {"input_output", input_output}}); });
  };
  EXPECT_THAT(problem(R"({"inputs": ["1"], "outputs": )"), HasSubstr("f:3: input_output"));
  EXPECT_THAT(problem(R"({"inputs": ["1"], "outputs": []})"),
              AllOf(HasSubstr("f:3: input_output"), HasSubstr("1 inputs and 0 outputs")));
  EXPECT_THAT(problem(R"({"inputs": [1], "outputs": ["1"]})"), HasSubstr("is not text"));
  EXPECT_THAT(problem(R"({"fn_name": "f", "inputs": ["1"], "outputs": ["1"]})"),
              HasSubstr("not a list of arguments"));
  EXPECT_THAT(error_of([] {
                converted({{"messages", kChat}, {"ground_truth", R"j(["assert f(1)", )j"}});
              }),
              HasSubstr("f:3: ground_truth"));
  // Rows without tests are left out, and counted by `data convert`.
  for (const char* empty : {"", R"({"inputs": [], "outputs": []})"})
    EXPECT_EQ(converted({{"question", "q"}, {"input_output", empty}}), std::nullopt);
  EXPECT_THAT(error_of([] {
                checked_tests({{"kind", "asserts"}, {"code", " \n"}}, "f:3");
              }),
              AllOf(HasSubstr("f:3"), HasSubstr("every program would pass")));
}

}  // namespace
}  // namespace antisd::inline data
