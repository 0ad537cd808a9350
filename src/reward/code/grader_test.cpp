#include "reward/code/grader.h"

#include <thread>

#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd::inline reward {
namespace {

using ::testing::HasSubstr;

CodeGrader& grader() {
  static CodeGrader grader({.timeout_s = 20, .workers = 2});
  return grader;
}

CodeGrade asserts(const std::string& program, const std::string& code) {
  return grader().grade_program(program, {{"kind", "asserts"}, {"code", code}});
}

CodeGrade functional(const std::string& program, const std::string& code,
                     const std::string& entry = "f") {
  return grader().grade_program(program,
                                {{"kind", "functional"}, {"code", code}, {"entry_point", entry}});
}

struct Tally {
  int passed, total;
  bool operator==(const Tally&) const = default;
};

void PrintTo(const Tally& tally, std::ostream* out) {
  *out << tally.passed << " of " << tally.total;
}

Tally tally(const CodeGrade& grade) {
  return {grade.passed, grade.total};
}

TEST(CodeGrader, CountsTopLevelAsserts) {
  const CodeGrade grade = grader().grade(
      "```python\ndef f(x):\n    return x + 1\n```",
      {{"kind", "asserts"}, {"code", "assert f(1) == 2\nassert f(2) == 4\nassert f(3) == 4"}});
  EXPECT_EQ(grade.correct, false);
  EXPECT_EQ(tally(grade), (Tally{2, 3}));
  EXPECT_EQ(grade.tests[1]["passed"], false);
  EXPECT_EQ(grade.tests[1]["reason"], "failed: assert f(2) == 4");
  EXPECT_EQ(grade.tests.size(), 3u);
}

TEST(CodeGrader, ExceptionsAreFailedTests) {
  const CodeGrade grade =
      asserts("def f(x): return 1 // x",
              "assert f(1) == 1\nassert f(0) == 1\nx = f(0)\nassert x == 1\nassert f(1) == 1");
  EXPECT_EQ(tally(grade), (Tally{2, 5})) << grade.tests.dump();
  EXPECT_THAT(grade.tests[1]["reason"].get<std::string>(), HasSubstr("ZeroDivisionError"));
  EXPECT_THAT(asserts("def f(x: return", "assert f(1) == 1").reason, HasSubstr("SyntaxError"));
  EXPECT_THAT(asserts("def g(): pass", "assert f(1) == 1").reason, HasSubstr("NameError"));
  EXPECT_THAT(asserts("raise ValueError('at load')", "assert f(1) == 1\nassert f(2) == 2").reason,
              HasSubstr("at load"));
}

TEST(CodeGrader, CountsAssertsReachedInCheck) {
  EXPECT_EQ(
      tally(functional(
          "def f(x): return x * x",
          "def check(candidate):\n  for i in range(10):\n    assert candidate(i) == 2 * i\n")),
      (Tally{2, 10}));
  EXPECT_EQ(tally(functional("class Solution:\n  def g(self, nums, k=1): return sum(nums) * k",
                             "def check(candidate):\n  assert candidate(nums=[1, 2], k=3) == 9\n  "
                             "assert candidate([]) == 0\ncheck(Solution().g)",
                             "Solution().g")),
            (Tally{2, 2}));
  EXPECT_EQ(tally(functional("def f(x): raise KeyError",
                             "def check(candidate):\n  candidate(1)\n  assert True\n")),
            (Tally{1, 2}));
}

TEST(CodeGrader, ExpectedExceptionsAndHandlers) {
  const char* program =
      "class Bad(ValueError): pass\ndef f(x):\n  if x < 0: raise Bad('negative')\n  if x == 0: "
      "raise KeyError(x)\n  return x";
  const char* code = R"(
try:
    f(-1)
    assert False, "no error"
except ValueError as error:
    assert str(error) == "negative"
try:
    f(-1)
    assert False
except Bad:
    assert True
try:
    f(0)
except KeyError:
    pass
assert f(1) == 1
)";
  const CodeGrade grade = asserts(program, code);
  EXPECT_EQ(grade.correct, true) << grade.reason;
  EXPECT_EQ(tally(grade), (Tally{3, 3}));
  EXPECT_EQ(asserts("def f(x): return x", code).correct, false);
}

TEST(CodeGrader, ValuesOfAllKindsPass) {
  const char* program = R"(
import collections, decimal, fractions, datetime
import numpy as np
def same(x): return x
def kind(x): return type(x).__name__
Point = collections.namedtuple("Point", "x y")
def point(): return Point(1, 2)
def keys(d): return d.keys()
def gen(n):
    for i in range(n): yield (i, [i])
def big(n): return [("a", "b")] * n + [("c", "d")]
)";
  const char* code = R"(
import collections, decimal, fractions, datetime, math
import numpy as np
for v in [None, True, 1, -5, 2**200, -2**70, 1.5, float("inf"), 1e-320, "text", "\u00e9\ud800", b"\x00\xff", bytearray(b"x"), (1, (2,)), [1, [2, "x"]],
          {1: "a", "b": [2], (1, 2): None}, {1, 2}, frozenset({"a"}), 3+4j, range(3, 9, 2), ..., collections.deque([1, 2], 5),
          collections.Counter("aab"), collections.OrderedDict(a=1), collections.defaultdict(list, {1: [2]}), fractions.Fraction(1, 3),
          decimal.Decimal("1.10"), datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 3, 4), datetime.timedelta(1, 2), np.float64(1.5), np.int32(7),
          int, list(range(10000)), [("x", "y")] * 9000, [(1, "y")] * 9000, {i: str(i) for i in range(5000)}]:
    out = same(v)
    assert out == v and type(out) is type(v), v
assert math.isnan(same(float("nan")))
a = np.arange(6.0).reshape(2, 3)
assert np.array_equal(same(a), a) and same(a).dtype == a.dtype and same(a).shape == (2, 3)
assert kind([1]) == "list" and kind((1,)) == "tuple" and kind({1}) == "set" and kind(a) == "ndarray"
assert point() == (1, 2) and point()[1] == 2
assert keys({1: 2}) == {1} and list(keys({3: 4})) == [3]
assert list(gen(3)) == [(0, [0]), (1, [1]), (2, [2])] and sum(i for i, _ in gen(4)) == 6 and (2, [2]) in gen(5)
assert big(5000)[-1] == ("c", "d") and len(big(5000)) == 5001 and big(5000)[0] == ("a", "b")
)";
  const CodeGrade grade = asserts(program, code);
  EXPECT_EQ(grade.correct, true) << grade.reason;
  EXPECT_GT(grade.total, 40);
}

TEST(CodeGrader, ChangesOfArgumentsAndCallbacks) {
  const CodeGrade grade = asserts(
      "def f(a, b=None):\n  a.append(1)\n  if b is not None: b.clear()\ndef apply(g, x): return "
      "g(g(x))\ndef drain(it): return sum(it)",
      "a = [0]\nf(a)\nassert a == [0, 1]\nd = {1: 2}\nf(a, b=d)\nassert d == {} "
      "and a == [0, 1, 1]\n"
      // Only a call whose result is not used changes the tests' own value.
      "x = f(a)\nassert a == [0, 1, 1]\n"
      "assert apply(lambda v: v + 1, 5) == 7\nassert apply(str.upper, 'a') == 'A'\nassert "
      "drain(iter([1, 2, 3])) == 6\n");
  EXPECT_EQ(grade.correct, true) << grade.reason;
}

TEST(CodeGrader, ClassesOfTheProgram) {
  const char* program = R"(
class Stack:
    limit = 3
    def __init__(self): self.items = []
    def push(self, x):
        if len(self.items) == self.limit: raise OverflowError("full")
        self.items.append(x); return self
    def __len__(self): return len(self.items)
    def __iter__(self): return iter(self.items)
    def __getitem__(self, i): return self.items[i]
    def __eq__(self, other): return isinstance(other, Stack) and self.items == other.items
    def __add__(self, other):
        s = Stack(); s.items = self.items + other.items; return s
    def __str__(self): return "Stack" + str(self.items)
)";
  const char* code = R"(
s = Stack()
assert len(s) == 0 and not s
assert len(s.push(1).push(2)) == 2
assert list(s) == [1, 2] and s[1] == 2 and 2 in s and 5 not in s
assert s.items == [1, 2] and str(s) == "Stack[1, 2]" and Stack.limit == 3
assert isinstance(s, Stack) and not isinstance(3, Stack)
assert Stack().push(1) == Stack().push(1) and Stack() != s
assert (s + s).items == [1, 2, 1, 2]
s.items = [9]
assert s[0] == 9
try:
    s.push(1).push(2).push(3)
    assert False
except OverflowError: pass
)";
  const CodeGrade grade = asserts(program, code);
  EXPECT_EQ(grade.correct, true) << grade.reason;
}

TEST(CodeGrader, TreesAndListsAsLeetCodeHasThem) {
  const char* program = R"(
class Solution:
    def invert(self, root: Optional[TreeNode]) -> Optional[TreeNode]:
        if root: root.left, root.right = self.invert(root.right), self.invert(root.left)
        return root
    def reverse(self, head: Optional[ListNode]) -> Optional[ListNode]:
        last = None
        while head: head.next, last, head = last, head, head.next
        return last
)";
  EXPECT_EQ(functional(program,
                       "def check(candidate):\n  assert is_same_tree(candidate(root = "
                       "tree_node([1, 2, 3, None, 4])), tree_node([1, 3, 2, None, None, 4]))\n"
                       "  assert candidate(root = tree_node([])) is None\n",
                       "Solution().invert")
                .correct,
            true);
  EXPECT_EQ(functional(program,
                       "def check(candidate):\n  assert is_same_list(candidate(list_node([1, 2, "
                       "3])), list_node([3, 2, 1]))\n",
                       "Solution().reverse")
                .correct,
            true);
}

TEST(CodeGrader, BuiltinNameAsTheTask) {
  EXPECT_EQ(asserts("def sum(a, b): return a - b", "assert sum(5, 3) == 2").correct, true);
  EXPECT_EQ(asserts("def sum(x): return 3\ndef f(x): return [1]", "assert sum(f(1)) == 3").correct,
            false);
}

TEST(CodeGrader, Stdio) {
  const Json tests = {{"kind", "stdio"},
                      {"cases",
                       {{{"input", "2\n"}, {"output", "4\n"}},
                        {{"input", "3"}, {"output", "7"}},
                        {{"input", "x"}, {"output", ""}}}}};
  const CodeGrade grade = grader().grade(
      "```python\nif __name__ == '__main__':\n    print(int(input()) * 2)\n```", tests);
  EXPECT_EQ(grade.correct, false);
  EXPECT_EQ(tally(grade), (Tally{1, 3}));
  EXPECT_EQ(grade.tests[1]["reason"], "wrong answer in line 1: expected \"7\", got \"6\"");
  EXPECT_THAT(grade.tests[2]["reason"].get<std::string>(), HasSubstr("ValueError"));
  const Json one = {{"kind", "stdio"}, {"cases", {{{"input", "1 2\n3\n"}, {"output", "6"}}}}};
  EXPECT_EQ(grader()
                .grade_program(
                    "import sys\nprint(sum(map(int, sys.stdin.read().split())))\nsys.exit(0)", one)
                .correct,
            true);
  EXPECT_EQ(
      grader().grade_program("print(sum(int(x) for x in open(0).read().split()))", one).correct,
      true);
  EXPECT_EQ(grader().grade_program("print(6)\nraise SystemExit(3)", one).correct, false);
  EXPECT_EQ(grader().grade_program("import os\nos.write(1, b'6')\nos._exit(0)", one).correct, true);
}

TEST(CodeGrader, BrokenTestsGiveNoVerdict) {
  EXPECT_EQ(asserts("def f(x): return x", "assert f(1 ==").correct, std::nullopt);
  EXPECT_EQ(functional("def f(x): return x", "x = 1").correct, std::nullopt);
  const char* texts[] = {"[]",
                         "{}",
                         R"({"kind":"other"})",
                         R"({"kind":"asserts"})",
                         R"({"kind":"stdio","cases":[]})",
                         R"({"kind":"stdio","cases":[{"input":1}]})",
                         R"({"kind":"functional","code":"","entry_point":"f(1).g"})",
                         R"({"kind":"functional","code":"","entry_point":"a b"})",
                         R"({"kind":"functional","code":"","entry_point":""})"};
  for (const char* text : texts) {
    const Json tests = parse_json(text, "row");
    EXPECT_THAT(testing::error_of([&] { grader().grade("no program", tests); }), HasSubstr("tests"))
        << text;
  }
}

TEST(CodeGrader, ResponsesWithoutAProgramAreWrong) {
  const CodeGrade grade =
      grader().grade("I do not know", {{"kind", "asserts"}, {"code", "assert f(1) == 1"}});
  EXPECT_EQ(grade.correct, false);
  EXPECT_EQ(tally(grade), (Tally{0, 1}));
  EXPECT_EQ(asserts(std::string("def f(x): return 1\n\0", 20), "assert f(1) == 1").correct, false)
      << "a zero byte";
  EXPECT_EQ(asserts("def f(x): return '\xff'", "assert f(1) == 1").correct, false) << "not UTF-8";
}

TEST(CodeGrader, ManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 5; ++i) {
        const std::string number = std::to_string(10 * t + i);
        EXPECT_EQ(asserts("def f(): return " + number, "assert f() == " + number).correct, true);
      }
    });
  for (std::thread& thread : threads)
    thread.join();
}

}  // namespace
}  // namespace antisd::inline reward
