#include "data/code_rows.h"

#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>

#include "core/error.h"
#include "core/testing.h"
#include "data/asked_names.h"
#include "data/problem.h"
#include "data/row_reader.h"

namespace antisd::inline data {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::shared_data;
using ::testing::StartsWith;

Json row_of(const std::string& text) {
  return parse_json(quote_evalplus_inputs(text), "row");
}

Json native(const std::string& text) {
  return native_code_row(row_of(text), "f:1", "stem", "stem-1").value();
}

bool python_is_here() {
  return std::system("python3 -IS -c pass >/dev/null 2>&1") == 0;
}

// Runs the response and its tests in one Python module, which is how `grade code` defines `tests`.
bool passes(const Json& tests, const std::string& response) {
  const testing::TemporaryFolder folder;
  std::string program = response + "\n";
  const bool functional = tests["kind"] == "functional";
  if (functional) {
    program += "the_candidate = " + tests["entry_point"].get<std::string>() + "\n";
  }
  program += tests["code"].get<std::string>() + "\n";
  if (functional) program += "check(the_candidate)\n";
  std::ofstream(folder / "program.py") << program;
  const std::string command =
      "timeout 20 python3 -IS " + (folder / "program.py").string() + " >/dev/null 2>&1";
  return std::system(command.c_str()) == 0;
}

TEST(CodeRows, HumanEvalForm) {
  const Json row = native(
      R"j({"task_id": "Own/0", "prompt": "def twice(x):\n", "entry_point": "twice", "canonical_solution": "    return 2 * x\n", "test": "def check(candidate):\n    assert candidate(2) == 4\n"})j");
  EXPECT_EQ(row, Json::parse(R"j({
    "id": "Own/0", "problem": "def twice(x):\n", "solution": "def twice(x):\n    return 2 * x\n",
    "tests": {"kind": "functional", "code": "def check(candidate):\n    assert candidate(2) == 4\n",
              "entry_point": "twice"},
    "source": "stem"})j"));
}

TEST(CodeRows, MendsTheTwoSlipsOfEvalPlus) {
  const Json poly = native(
      R"j({"task_id": "HumanEval/32", "prompt": "p", "entry_point": "find_zero", "canonical_solution": "c", "test": "        assert _poly(*candidate(*inp), inp) <= 0.0001\n"})j");
  EXPECT_EQ(poly["tests"]["code"], "        assert abs(_poly(*inp, candidate(*inp))) <= 0.0001\n");
  const Json truth = native(
      R"j({"task_id": 737, "code": "c", "prompt": "p", "test_imports": [], "test_list": ["assert f('')"], "test": "def assertion(out, exp, atol):\n    if isinstance(out, bool):\n        exact_match = out == exp\n    else:\n        exact_match = exp == (out is not None)\n\nfor inp, exp in [((1,), True)]:\n    assertion(f(*inp), exp, 0)\n"})j");
  EXPECT_THAT(truth["tests"]["code"].get<std::string>(),
              HasSubstr("(out is not None)\n    assert exact_match\n\nfor"));
  if (!python_is_here()) GTEST_SKIP() << "no python3 here";
  EXPECT_TRUE(passes(truth["tests"], "def f(x): return True"));
  EXPECT_TRUE(passes(truth["tests"], "def f(x): return 'a match'"));
  EXPECT_FALSE(passes(truth["tests"], "def f(x): return None"));
}

TEST(CodeRows, MbppForms) {
  const Json plain = native(
      R"j({"text": "Double it.", "code": "def d(x):\n  return 2*x", "task_id": 11, "test_setup_code": "k = 1", "test_list": ["assert d(1) == 2", "assert d(2) == 4"], "challenge_test_list": ["assert d(9) == 0"]})j");
  EXPECT_EQ(plain["id"], "Mbpp/11");
  EXPECT_EQ(plain["solution"], "def d(x):\n  return 2*x");
  EXPECT_EQ(
      plain["tests"],
      Json::parse(
          R"j({"kind": "asserts", "code": "k = 1\nassert d(1) == 2\nassert d(2) == 4\n", "names": {"d": "function"}})j"));
  EXPECT_THAT(
      plain["problem"].get<std::string>(),
      AllOf(HasSubstr("Double it."), HasSubstr("assert d(2) == 4"), Not(HasSubstr("d(9)"))));
  const Json sanitized = native(
      R"j({"source_file": "s", "prompt": "Double it.", "code": "c", "task_id": 11, "test_imports": ["import math"], "test_list": ["assert d(1) == 2"]})j");
  EXPECT_EQ(sanitized["tests"]["code"], "import math\nassert d(1) == 2\n");
  const Json plus = native(
      R"j({"source_file": "s", "prompt": "Double it.", "code": "c", "task_id": 11, "test_imports": ["import math"], "test_list": ["assert d(1) == 2"], "test": "for i in [1]:\n    assert d(i) == 2 * i\n"})j");
  EXPECT_EQ(plus["tests"]["code"], "import math\nfor i in [1]:\n    assert d(i) == 2 * i\n");
  EXPECT_THAT(plus["problem"].get<std::string>(), HasSubstr("assert d(1) == 2"));
}

TEST(CodeRows, AskedNamesAreThoseThatTheSolutionDefinesAndTheTestsUse) {
  EXPECT_EQ(
      asked_names("import math\nR = 3\nclass Pair(object):\n  def left(self): pass\nasync "
                  "def go(): pass\ndef  sum (a):\r\n  x = 1\nf = lambda: 1\nf == 1",
                  "assert sum(Pair(1)).left == x and f() and go() and summit and Ring"),
      Json::parse(R"({"Pair": "class", "go": "function", "sum": "function", "f": "function"})"));
  EXPECT_EQ(asked_names("", "assert f()"), Json::object());
  EXPECT_EQ(asked_names("def f(): pass", "assert ff() and f_"), Json::object());
}

// HumanEval/50: if encode_shift came from the program, two identities would pass.
TEST(CodeRows, HelpersOfAPromptAreTheTests) {
  const Json shift = native(
      R"j({"task_id": "HumanEval/50", "prompt": "\n\ndef encode(s):\n    return s + 'x'\n\n\ndef decode(s):\n    \"\"\"The inverse.\"\"\"\n", "entry_point": "decode", "canonical_solution": "    return s[:-1]\n", "test": "def check(candidate):\n    assert candidate(encode('ab')) == 'ab'\n"})j");
  EXPECT_THAT(shift["tests"]["code"].get<std::string>(),
              StartsWith("\n\ndef encode(s):\n    return s + 'x'\n"));
  const Json unused = native(
      R"j({"task_id": "HumanEval/10", "prompt": "def help(s):\n    return s\n\ndef f(s):\n", "entry_point": "f", "canonical_solution": "    return s\n", "test": "def check(candidate):\n    assert candidate('') == ''\n"})j");
  EXPECT_THAT(unused["tests"]["code"].get<std::string>(), StartsWith("def check"));
  if (!python_is_here()) GTEST_SKIP() << "no python3 here";
  EXPECT_TRUE(passes(shift["tests"], "def decode(s): return s[:-1]"));
  EXPECT_FALSE(passes(shift["tests"], "def decode(s): return s\ndef encode(s): return s"));
}

constexpr const char* kEvalPlus =
    R"j({"task_id": "%s", "prompt": "%s", "entry_point": "%s", "canonical_solution": "%s", "base_input": %s, "plus_input": %s, "atol": %s, "contract": "", "assertion": "%s"})j";

Json evalplus(const char* id, const char* prompt, const char* name, const char* solution,
              const char* base, const char* plus, const char* atol, const char* assertion) {
  std::string text = kEvalPlus;
  for (const char* value : {id, prompt, name, solution, base, plus, atol, assertion}) {
    text.replace(text.find("%s"), 2, value);
  }
  return native(text)["tests"];
}

TEST(CodeRows, EvalPlusRunsTheReference) {
  if (!python_is_here()) GTEST_SKIP() << "no python3 here";
  const Json tests = evalplus("HumanEval/900", "def third(x):\\n", "third", "    return x / 3\\n",
                              "[[1], [2.5]]", "[[99999999999999999999999], [Infinity]]", "0", "");
  EXPECT_EQ(tests["kind"], "functional");
  EXPECT_TRUE(passes(tests, "def third(x):\n    return x / 3"));
  EXPECT_TRUE(passes(tests, "def third(x):\n    return x * (1 / 3)"));  // within 1e-6 + 1e-7 |x|
  EXPECT_FALSE(passes(tests, "def third(x):\n    return round(x / 3, 3)"));
  EXPECT_FALSE(passes(tests, "def third(x):\n    return x // 3"));
  // Large integers keep every digit: 10^23 - 1 is odd.
  const Json odd = evalplus("HumanEval/901", "def odd(x):\\n", "odd", "    return x % 2 == 1\\n",
                            "[]", "[[99999999999999999999999]]", "0", "");
  EXPECT_TRUE(passes(odd, "def odd(x):\n    return True"));
  EXPECT_FALSE(passes(odd, "def odd(x):\n    return False"));
}

TEST(CodeRows, EvalPlusKeepsToleranceAndArguments) {
  if (!python_is_here()) GTEST_SKIP() << "no python3 here";
  const Json loose = evalplus("HumanEval/902", "def f(x):\\n", "f", "    return [x, 2 * x]\\n",
                              "[[1]]", "{}", "0.01", "");
  EXPECT_TRUE(passes(loose, "def f(x):\n    return [x + 0.005, 2 * x]"));
  EXPECT_FALSE(passes(loose, "def f(x):\n    return [x + 0.02, 2 * x]"));
  EXPECT_FALSE(passes(loose, "def f(x):\n    return [x]"));
  // A candidate that changes its argument does not change the reference's argument.
  const Json sum = evalplus("HumanEval/903", "def f(x):\\n", "f", "    return sum(x)\\n",
                            "[[[1, 2]], [[3]]]", "[]", "0", "");
  EXPECT_TRUE(passes(sum, "def f(x):\n    t = sum(x)\n    x.clear()\n    return t"));
  // Any root of the polynomial is accepted: x^2 - 1 has two.
  const Json root = evalplus("HumanEval/32", "def find_zero(xs):\\n", "find_zero",
                             "    return 1.0\\n", "[[[-1, 0, 1]]]", "[]", "0.0001", "");
  EXPECT_TRUE(passes(root, "def find_zero(xs):\n    return -1.0"));
  EXPECT_FALSE(passes(root, "def find_zero(xs):\n    return 0.5"));
}

TEST(CodeRows, MbppPlusInputsTakeTheFormOfTheAssertions) {
  if (!python_is_here()) GTEST_SKIP() << "no python3 here";
  // The reference fails on all inputs except those of its assertion.
  const char* const strict =
      "def f(a, b, c):\\n"
      "    assert type(a) is tuple and all(type(i) is tuple for i in a), a\\n"
      "    assert type(b) is set and type(c) is dict and all(type(k) is int for k in c)\\n"
      "    return len(a)\\n";
  const Json tests = evalplus("Mbpp/900", "", "f", strict, R"([[[[1, 2]], [1], {"1": 2}]])",
                              R"([[[[1, 2], [3]], [5, 6], {"7": 8, "-9": 1}], [[], [], {}]])", "0",
                              "assert f(((1, 2),), {1}, {1: 2}) == 1\\n");
  EXPECT_TRUE(passes(tests, "def f(a, b, c):\n    return len(a)"));
  EXPECT_FALSE(passes(tests, "def f(a, b, c):\n    return 1"));
  const Json complex =
      evalplus("Mbpp/901", "", "f", "def f(z):\\n    return z * 1j\\n", R"([["1"]])",
               R"j([["(2+3j)"], ["4j"]])j", "0", "assert f(1) == 1j\\n");
  EXPECT_TRUE(passes(complex, "def f(z):\n    return 1j * z"));
  EXPECT_FALSE(passes(complex, "def f(z):\n    return -1j * z"));
}

TEST(CodeRows, MbppPlusComparesAsEvalPlusDoes) {
  if (!python_is_here()) GTEST_SKIP() << "no python3 here";
  const Json sets =
      evalplus("Mbpp/769", "", "Diff", "def Diff(a, b):\\n    return sorted(set(a) - set(b))\\n",
               "[[[1, 2, 3], [2]]]", "[]", "0", "assert Diff([1], [2]) == [1]\\n");
  EXPECT_TRUE(passes(sets, "def Diff(a, b):\n    return [3, 1]"));
  EXPECT_FALSE(passes(sets, "def Diff(a, b):\n    return [3]"));
  const Json truth = evalplus("Mbpp/737", "", "check_str",
                              "import re\\ndef check_str(s):\\n    return re.search('^a', s)\\n",
                              R"([["ab"], ["b"]])", "[]", "0", "assert check_str('a')\\n");
  EXPECT_TRUE(passes(truth, "def check_str(s):\n    return s[0] == 'a'"));
  EXPECT_TRUE(passes(truth, "def check_str(s):\n    return 'yes' if s[0] == 'a' else None"));
  EXPECT_FALSE(passes(truth, "def check_str(s):\n    return True"));
  // A function that is itself called check.
  const Json check = evalplus("Mbpp/56", "", "check", "def check(n):\\n    return n > 0\\n",
                              "[[1], [0]]", "[]", "0", "assert check(1)\\n");
  EXPECT_TRUE(passes(check, "def check(n):\n    return n >= 1"));
  EXPECT_FALSE(passes(check, "def check(n):\n    return True"));
}

TEST(CodeRows, LiveCodeBench) {
  const Json stdio = native(
      R"j({"question_title": "T", "question_content": "Add.", "question_id": "1_A", "starter_code": "", "public_test_cases": "[{\"input\": \"1 2\\n\", \"output\": \"3\\n\", \"testtype\": \"stdin\"}]", "metadata": "{}"})j");
  EXPECT_EQ(stdio, Json::parse(R"j({"id": "1_A", "problem": "Add.",
      "tests": {"kind": "stdio", "cases": [{"input": "1 2\n", "output": "3\n"}]}, "source": "stem"})j"));
  const Json functional = native(
      R"j({"question_content": "Add.", "question_id": "7", "starter_code": "class Solution:\n    def add(self, a, b):\n        ", "public_test_cases": "[{\"input\": \"[1, 2]\\n\\\"é\\\"\", \"output\": \"[1, 2, \\\"é\\\"]\", \"testtype\": \"functional\"}, {\"input\": \"[true]\\nnull\", \"output\": \"[true, null]\", \"testtype\": \"functional\"}]", "metadata": "{\"func_name\": \"add\"}"})j");
  EXPECT_EQ(functional["tests"]["entry_point"], "Solution().add");
  EXPECT_THAT(functional["problem"].get<std::string>(), HasSubstr("def add(self, a, b):\n```"));
  if (!python_is_here()) GTEST_SKIP() << "no python3 here";
  const std::string head = "class Solution:\n    def add(self, a, b):\n        return ";
  EXPECT_TRUE(passes(functional["tests"], head + "a + [b]"));
  EXPECT_TRUE(passes(functional["tests"], head + "tuple(a + [b])"));
  EXPECT_FALSE(passes(functional["tests"], head + "[b] + a"));
}

TEST(CodeRows, StatementsRllmAndAceCode) {
  const auto statement = [](const std::string& tests) {
    return R"({"id": "s", "problem": "P", "starter_code": "", "source": "own", "sample_tests": )" +
           tests + "}";
  };
  const std::string empty = statement("[]");
  const std::string full = statement(R"([{"input": "1\r\n", "output": "2"}])");
  EXPECT_EQ(native_code_row(row_of(empty), "f:1", "stem", "x"), std::nullopt);
  EXPECT_EQ(native(full)["tests"]["cases"][0]["input"], "1\r\n");
  EXPECT_EQ(native(full)["source"], "own");
  const Json pairs =
      native(R"j({"problem": "P", "tests": {"inputs": ["1", "2"], "outputs": ["3", "4"]}})j");
  EXPECT_EQ(pairs["id"], "stem-1");
  EXPECT_EQ(pairs["tests"]["cases"],
            Json::parse(R"([{"input": "1", "output": "3"}, {"input": "2", "output": "4"}])"));
  EXPECT_EQ(
      native(R"j({"problem": "P", "tests": [{"input": "1", "output": "3"}]})j")["tests"]["kind"],
      "stdio");
  const Json call = native(
      R"j({"problem": "P", "solutions": "S", "tests": {"functional": "def check(candidate):\n    assert candidate(1) == 1\n\n\ncheck(Solution().f)"}})j");
  EXPECT_EQ(call["tests"]["code"], "def check(candidate):\n    assert candidate(1) == 1\n\n\n");
  EXPECT_EQ(call["tests"]["entry_point"], "Solution().f");
  EXPECT_EQ(call["solution"], "S");
  EXPECT_EQ(
      native(
          R"j({"id": "o", "source": "oss", "question": "Q", "test_cases": ["assert f() == 1", "assert g()"]})j")
          ["tests"]["code"],
      "assert f() == 1\nassert g()\n");
}

TEST(CodeRows, UnknownShapesNameTheirColumns) {
  EXPECT_FALSE(is_raw_code_row(row_of(R"({"problem": "p", "answer": "1"})")));
  EXPECT_FALSE(
      is_raw_code_row(row_of(R"({"problem": "p", "tests": {"kind": "asserts", "code": ""}})")));
  EXPECT_FALSE(is_raw_code_row(row_of(R"({"problem": "p", "tests": "{\"kind\": \"asserts\"}"})")));
  EXPECT_THAT(error_of([] { native(R"({"id": 1, "output": "x"})"); }),
              HasSubstr("f:1: not a row of a known code data set; it has: id, output"));
  for (
      const char* bad :
      {R"({"task_id": 1, "prompt": 2, "entry_point": "f", "canonical_solution": "", "test": ""})",
       R"({"task_id": 1, "text": "t", "code": "c", "test_list": "no list"})",
       R"({"task_id": 1, "text": "t", "code": "c", "test_list": [1]})",
       R"({"question_content": "q", "public_test_cases": "[", "metadata": "{}"})",
       R"({"question_content": "q", "public_test_cases": "{}", "metadata": "{}"})",
       R"({"question_content": "q", "public_test_cases": "[1]", "metadata": "{}"})",
       R"({"question_content": "q", "public_test_cases": "[{\"input\": \"\", \"output\": \"\", \"testtype\": \"functional\"}]", "metadata": "[]"})",
       R"({"problem": "p", "tests": {"functional": 1}})",
       R"({"problem": "p", "tests": {"functional": ""}})",
       R"({"problem": "p", "tests": {"functional": "\ncheck("}})",
       R"({"problem": "p", "tests": {"inputs": ["1"], "outputs": []}})",
       R"({"problem": "p", "tests": {"inputs": [1], "outputs": ["1"]}})",
       R"({"problem": "p", "tests": "[1]"})", R"({"problem": "p", "tests": "{}"})",
       R"({"problem": "p", "tests": "[["})",
       R"({"problem": "p", "sample_tests": 3, "starter_code": ""})",
       R"({"task_id": "x", "prompt": "p", "entry_point": "f", "canonical_solution": "", "base_input": "a", "plus_input": 1, "atol": "x"})"}) {
    EXPECT_THAT(error_of([&] { native(bad); }), HasSubstr("f:1: ")) << bad;
  }
}

// A value may have any type: the result is a row, nothing, or an Error with its place.
TEST(CodeRows, AnyTypeAnywhere) {
  const std::vector<Json> values = {nullptr,
                                    true,
                                    -1,
                                    1.5,
                                    "",
                                    "[",
                                    "[{}]",
                                    "{}",
                                    Json::array(),
                                    Json::object(),
                                    {1, "x"},
                                    {{"kind", "x"}},
                                    {Json::object()}};
  const std::vector<std::string> rows = {
      R"({"task_id": "Mbpp/1", "prompt": "p", "entry_point": "f", "canonical_solution": "s", "test": "t"})",
      R"({"task_id": "Mbpp/1", "prompt": "p", "entry_point": "f", "canonical_solution": "s", "base_input": "[]", "plus_input": "[]", "atol": 0, "assertion": ""})",
      R"({"task_id": 1, "prompt": "p", "code": "c", "test_imports": [""], "test_list": ["t"], "test_setup_code": "", "test": "t"})",
      R"({"question_content": "q", "question_id": "1", "starter_code": "s", "public_test_cases": "[{\"input\": \"\", \"output\": \"\", \"testtype\": \"functional\"}]", "metadata": "{\"func_name\": \"f\"}"})",
      R"({"id": "1", "problem": "p", "sample_tests": [{"input": "i", "output": "o"}], "starter_code": "s", "source": "x"})",
      R"({"problem": "p", "solutions": "s", "tests": {"inputs": ["1"], "outputs": ["1"]}})",
      R"j({"problem": "p", "tests": {"functional": "\ncheck(f)"}})j",
      R"({"question": "q", "test_cases": ["t"]})",
      R"({"id": "1", "problem": "p", "answer": "a", "solution": "s", "source": "x", "tests": {"kind": "stdio", "cases": [{"input": "", "output": ""}]}})",
      R"({"data_source": "d", "prompt": [{"role": "user", "content": "c"}], "reward_model": {"ground_truth": {"target": "t", "solution": "s"}}, "extra_info": {"index": 1}})"};
  ProblemParser parser({}, false);
  const auto try_row = [&](const Json& row) {
    const auto careful = [&](auto&& action) {
      try {
        action();
      } catch (const InputError& error) {
        EXPECT_THAT(error.message(), HasSubstr("f:1")) << to_json_line(row);
      }
    };
    careful([&] { native_code_row(row, "f:1", "s", "s-1"); });
    careful([&] {
      Json copy = row;
      to_row(parser.parse(copy, "f:1", "s", 1));
    });
  };
  for (const std::string& text : rows) {
    const Json row = parse_json(text, "row");
    try_row(row);
    const Json flat = row.flatten();  // JSON pointers of all leaves; their parents are tested below
    for (const auto& [leaf, ignored] : flat.items()) {
      for (Json::json_pointer place(leaf); !place.empty(); place.pop_back()) {
        for (const Json& value : values) {
          Json changed = row;
          changed[place] = value;
          try_row(changed);
        }
      }
    }
  }
}

// Every raw file becomes rows that the trainer accepts; only rows without tests are dropped.
TEST(CodeRowsRealData, EveryFileConverts) {
  ANTISD_NEEDS_SHARED(shared_data("code"));
  const std::vector<std::pair<const char*, int>> files = {{"humaneval.jsonl", 164},
                                                          {"humanevalplus.jsonl", 164},
                                                          {"humanevalplus_originfmt.jsonl", 164},
                                                          {"mbpp.jsonl", 974},
                                                          {"mbpp_sanitized.json", 427},
                                                          {"mbppplus.jsonl", 378},
                                                          {"mbppplus_originfmt.jsonl", 378},
                                                          {"lcb_v1_public_tests.jsonl", 400},
                                                          {"lcb_v6_statements.jsonl", 600},
                                                          {"rllm_train_leetcode.json", 1889},
                                                          {"rllm_test_leetcode.json", 200},
                                                          {"rllm_test_code_contests.json", 165},
                                                          {"rllm_test_codeforces.json", 408},
                                                          {"openinstruct_acecode_sample.jsonl", 1}};
  ProblemParser parser;
  for (const auto& [name, expected] : files) {
    RowReader reader(shared_data(std::string("code/") + name));
    int count = 0;
    for (Json row; reader.next(row);) {
      ASSERT_TRUE(is_raw_code_row(row)) << reader.where();
      auto native = native_code_row(row, reader.where(), reader.stem(), "x");
      if (!native) continue;
      ++count;
      ASSERT_FALSE(is_raw_code_row(*native));
      const Problem problem = parser.parse(*native, reader.where(), "s", 1);
      ASSERT_FALSE(problem.tests.is_null());
    }
    EXPECT_EQ(count, expected) << name;
  }
}

}  // namespace
}  // namespace antisd::inline data
