// What crosses between the program and the tests: names, objects, control flow and values that are
// not answers. Each row has programs that must fail and one that solves it.

#include <gmock/gmock.h>

#include "core/testing.h"
#include "reward/code/grader.h"

namespace antisd::inline reward {
namespace {

using ::testing::HasSubstr;

CodeGrader& boundary_grader() {
  static CodeGrader grader({.timeout_s = 20, .workers = 1});
  return grader;
}

Json assert_tests(const std::string& code) {
  return {{"kind", "asserts"}, {"code", code}};
}
Json functional_tests(const std::string& code, const std::string& entry = "f") {
  return {{"kind", "functional"}, {"code", code}, {"entry_point", entry}};
}

void expect_only(const std::string& solution, const std::vector<std::string>& cheats,
                 const Json& tests) {
  const CodeGrade good = boundary_grader().grade_program(solution, tests);
  EXPECT_EQ(good.correct, true) << good.reason << "\n" << tests.dump(1);
  for (const std::string& cheat : cheats) {
    const CodeGrade grade = boundary_grader().grade_program(cheat, tests);
    EXPECT_EQ(grade.correct, false) << cheat << "\n" << tests.dump(1);
    EXPECT_EQ(grade.passed, 0) << cheat << "\n" << grade.tests.dump();
  }
}

// As in MBPP+ and HumanEval+ on Hugging Face.
constexpr const char* kAssertion = R"(import numpy as np
from math import inf

def is_floats(x) -> bool:
    if isinstance(x, float):
        return True
    if isinstance(x, (list, tuple)):
        return all(isinstance(i, float) for i in x)
    return False

def assertion(out, exp, atol):
    exact_match = out == exp
    if atol == 0 and is_floats(exp):
        atol = 1e-6
    if not exact_match and atol != 0:
        assert np.allclose(out, exp, rtol=1e-07, atol=atol)
    else:
        assert exact_match, f"out: {out}, exp: {exp}"

inputs = [[1], [2], [3]]
results = [[2.0], [4.0], [6.0]]
)";

TEST(CodeBoundary, LoopsOfTheTestsAreTheTests) {
  const std::string loop = "for i, (inp, exp) in enumerate(zip(inputs, results)):\n    ";
  const std::vector<std::string> cheats = {
      "def enumerate(x): return ()",
      "def zip(*x): return ()",
      "def enumerate(x): return ()\ndef zip(*x): return ()\ndef f(x): return 0",
      "def assertion(*x): pass\ndef is_floats(x): return True",
      "results = inputs = []",
      "def f(x): return []",
      "def f(x): return ()",
      "import numpy as np\ndef f(x): return np.array([])",
      "import numpy as np\ndef f(x): return np.zeros((0, 1))",
      "def f(x): return [float('nan')]",
      "def f(x): return [[]]",
      "def f(x): return [[2.0, 4.0, 6.0]]"};
  const char* solution = "def f(x): return [2.0 * x]";
  expect_only(solution, cheats, assert_tests(kAssertion + loop + "assertion(f(*inp), exp, 0)\n"));
  Json check = functional_tests(std::string(kAssertion) +
                                "def check(candidate):\n"
                                "    for i, (inp, exp) in enumerate(zip(inputs, results)):\n"
                                "        assertion(candidate(*inp), exp, 0)\n");
  expect_only(solution, cheats, check);
  EXPECT_EQ(boundary_grader().grade_program(solution, check).total, 3)
      << "a helper's asserts are one check";
}

TEST(CodeBoundary, TheRowSaysWhichNamesAreTheProgram) {
  const std::vector<std::string> none = {"", "x = 1", "from math import *\ndel gcd",
                                         "def f(): pass"};
  expect_only("def gcd(a, b): return b if a % b == 0 else gcd(b, a % b)", none,
              assert_tests("assert gcd(12, 8) == 4"));
  expect_only("def sum(a, b): return a + b", none, assert_tests("assert sum(1, 2) == 3"));
  // Helpers of the tests that look like the task: the row must say which one is asked for.
  const std::string code = "for x, y in zip([1, 2], [2, 4]):\n    assert abs(sum(x, x) - y) < 1";
  Json tests = assert_tests(code);
  EXPECT_EQ(boundary_grader().grade_program("def sum(a, b): return a + b", tests).correct,
            std::nullopt);
  tests["names"] = {{"sum", "function"}};
  expect_only("def sum(a, b): return a + b",
              {"def zip(*x): return ()", "def abs(x): return 0", "def sum(a, b): return 9"}, tests);
  // The program's own list of names is ignored.
  const char* lying = R"(
import sys
OPS = sys._getframe(1).f_globals["OPS"]
OPS["load"] = lambda program, *names: [["set", "sorted", "abs", "round", "isclose"]]
OPS["name"] = lambda program, name: ["found", program.encode(lambda *a, **k: True)]
def f(x): return [5]
set = sorted = abs = round = isclose = lambda *a, **k: True
)";
  expect_only("def f(x): return [2 * x]", {lying},
              assert_tests("import math\nfrom math import isclose\nassert set(f(1)) == set([2])\n"
                           "assert sorted(f(2)) == [4]\nassert abs(f(1)[0] - 2) < 1e-6\n"
                           "assert round(f(3)[0]) == 6\nassert isclose(f(1)[0], 2)"));
}

TEST(CodeBoundary, ACheckTakesNoHelperFromTheProgram) {
  const CodeGrade grade = boundary_grader().grade_program(
      "def encode(s): return s\ndef f(s): return s",
      functional_tests("def check(candidate):\n  assert candidate(encode('abc')) == 'abc'\n"));
  EXPECT_EQ(grade.correct, std::nullopt);
  EXPECT_THAT(grade.reason, HasSubstr("encode"));
}

TEST(CodeBoundary, WhatTestsHandOutHasNoFrames) {
  const char* cheat = R"(
def reach(g):
    for path in ("gi_frame.f_globals", "gi_frame.f_back.f_globals", "__globals__", "f_globals",
                 "cr_frame.f_globals", "gi_code", "__self__", "make.__globals__"):
        value = g
        try:
            for name in path.split("."): value = getattr(value, name)
            value["__builtins__"]["exec"]("import gc")
            return True
        except BaseException as error:
            if type(value).__name__ != type(g).__name__: return True
    return False
def f(g): return "reached" if reach(g) else "nothing"
)";
  const Json tests = assert_tests(R"(
class Box:
    def __init__(self): self.item = 3
    def make(self): return (x for x in [1])
async def later(): pass
for thing in [(x for x in [1, 2]), (lambda: (yield 1)), (lambda: (yield 1))(), Box(), Box().make, later, map(str, [1]), later()]:
    assert f(thing) == "nothing"
)");
  const CodeGrade grade = boundary_grader().grade_program(cheat, tests);
  EXPECT_EQ(grade.passed, 8) << grade.tests.dump(1);
}

TEST(CodeBoundary, FunctionsIteratorsAndObjectsOfTheTestsStillServe) {
  const char* code = R"(
class Node:
    def __init__(self, value, next=None): self.value, self.next = value, next
    def twice(self): return 2 * self.value
def numbers():
    yield from (1, 2, 3)
assert total(numbers()) == 6 and total(x for x in [4]) == 4 and total(iter([])) == 0
assert apply(lambda x: x + 1, 2) == 3 and apply(len, "abc") == 3 and apply(str.upper, "a") == "A"
assert apply(lambda x: [x], 1) == [1] and apply(apply_twice := (lambda x: lambda y: x + y), 1)(2) == 3
assert values(Node(1, Node(2))) == [1, 2] and doubled(Node(4)) == 8
)";
  const CodeGrade grade = boundary_grader().grade_program(
      "def total(xs): return sum(xs)\ndef apply(g, x): return g(x)\ndef doubled(n): return "
      "n.twice()\ndef values(n):\n  out = []\n  while n is not None:\n    out.append(n.value)\n    "
      "n = n.next\n  return out",
      assert_tests(code));
  EXPECT_EQ(grade.correct, true) << grade.reason;
  EXPECT_EQ(grade.total, 4);
}

TEST(CodeBoundary, ACheckThatFailsInsideTheProgramIsNotSwallowed) {
  const char* code =
      "def visit(x):\n  assert x == 5\ndef run():\n  each(visit)\n  assert True\nrun()";
  expect_only("def each(g): g(5)",
              {"def each(g):\n  try: g(1)\n  except BaseException: pass",
               "def each(g):\n  try: g(1)\n  except BaseException: pass\n  g(5)"},
              assert_tests(code));
}

TEST(CodeBoundary, ObjectsDoNotJudgeThemselves) {
  const char* judge =
      "class Judge:\n  def __getattr__(self, n):\n    if n.startswith('__'): raise "
      "AttributeError(n)\n    return lambda *a, **k: True\n  def __call__(self, *a): return self\n"
      "  def __iter__(self): return iter([])\n"
      "def f(x): return Judge()";
  const std::string as_class = std::string(judge) + "\nf = Judge";
  for (const char* code :
       {"assert f({1, 2}).issubset({1, 2})", "assert f('ab').startswith('ab')",
        "assert not f('ab').endswith('x')", "assert len(f('ab')) == 2", "assert f([1, 2])[0] == 1",
        "assert f((1, 2)).count(1) == 1", "assert f('x') != 'y'", "assert f(7) > 5",
        "assert f(7) - 7 == 0", "assert int(f(7)) == 7", "assert isinstance(f(1), int)"})
    expect_only("def f(x): return x", {judge, as_class}, assert_tests(code));
  const char* twofold =
      "class Two:\n  n = 0\n  def __iter__(self):\n    self.n += 1\n    return iter([3, 1, 2] if "
      "self.n % 2 else [1, 2, 3])\ndef f(x): return Two()";
  expect_only(
      "def f(x): return sorted(x)", {twofold},
      assert_tests("def good(out):\n  items = list(out)\n  assert set(out) == {1, 2, 3}\n  assert "
                   "list(out) == [1, 2, 3]\ngood(f([3, 1, 2]))"));
}

TEST(CodeBoundary, AClassThatTheRowAsksForDecides) {
  const Json row = assert_tests(
      "s = Box([1])\nassert s.holds(1) and not s.holds(2)\nassert s == Box([1]) and s.items == "
      "[1]\nassert len(s) == 1");
  const char* solution =
      "class Box:\n  def __init__(self, items): self.items = items\n  def holds(self, x): return x "
      "in self.items\n  def __eq__(self, o): return self.items == o.items\n  def __len__(self): "
      "return len(self.items)";
  expect_only(solution, {"Box = dict", "def Box(items): return 0", ""}, row);
  // What one of its methods returns must be plain data to be judged.
  const char* liar =
      "class Liar:\n  def __getattr__(self, n):\n    if n.startswith('__'): raise "
      "AttributeError(n)\n    return lambda *a, **k: True\nclass Solution(Liar):\n  def f(self, "
      "x): "
      "return Liar()";
  const std::string itself = std::string(liar) + "\n  def f(self, x): return self";
  for (const char* code :
       {"assert Solution().f('x').startswith('x')", "assert Solution().f('x').isalpha()",
        "s = Solution()\nassert s.f({1}).issubset({1, 2})"})
    expect_only("class Solution:\n  def f(self, x): return x", {liar, itself}, assert_tests(code));
  Json told = assert_tests("assert box([1]).holds(1)");
  EXPECT_EQ(boundary_grader().grade_program(std::string(solution) + "\nbox = Box", told).correct,
            false);
  told["names"] = {{"box", "class"}};
  EXPECT_EQ(boundary_grader().grade_program(std::string(solution) + "\nbox = Box", told).correct,
            true);
}

TEST(CodeBoundary, ExceptionsOfTheProgramEndNoLoopOfTheTests) {
  std::vector<std::string> cheats;
  for (const char* raised : {"StopIteration", "StopAsyncIteration", "GeneratorExit", "SystemExit",
                             "KeyboardInterrupt", "type('Own', (StopIteration,), {})", "IndexError",
                             "AssertionError", "BaseExceptionGroup('x', [StopIteration()])"})
    cheats.push_back(std::string("def f(x): raise ") + raised);
  for (const char* code :
       {"assert all(a == b for a, b in zip(map(f, [1, 2]), [2, 4]))",
        "assert list(map(f, [])) == [] and not [a for a in map(f, [1, 2]) if a % 2]",
        "for a, b in zip(map(f, [1, 2]), [2, 4]):\n  assert a == b",
        "assert not any(a != b for a, b in zip(map(f, [1]), [2]))",
        "assert set(map(f, [1, 2])) <= {2, 4}",
        "def values():\n  yield f(1)\n  yield f(2)\nassert all(v in (2, 4) for v in values())"})
    expect_only("def f(x): return 2 * x", cheats, assert_tests(code));
}

TEST(CodeBoundary, NotANumberPassesNothing) {
  const std::vector<std::string> cheats = {
      "def f(x): return float('nan')", "import numpy as np\ndef f(x): return np.float64('nan')",
      "import decimal\ndef f(x): return decimal.Decimal('nan')", "def f(x): return 1e400 - 1e400",
      "import numpy as np\ndef f(x): return np.array([float('nan')], dtype=object)"};
  for (const char* code :
       {"assert not abs(f(1) - 2) > 1e-6", "assert not f(1) < 2 and not f(1) > 2",
        "assert not (f(1) < 2 or f(1) > 2)", "assert abs(f(1) - 2) < 1e-6",
        "def bad(a, b):\n  if abs(a - b) > 1e-6:\n    return True\n  return False\nassert not "
        "bad(f(1), 2)",
        "def bad(a, b):\n  return abs(a - b) > 1e-6\nassert not bad(f(1), 2)",
        "assert max(0.0, abs(f(1) - 2)) < 1e-6",
        "assert max([0.0] + [abs(f(x) - 2 * x) for x in (1, 2)]) < 1e-6",
        "assert not any(abs(f(x) - 2 * x) > 1e-6 for x in (1, 2))",
        "import numpy as np\nassert not np.any(np.abs(np.array([f(1)]) - 2) > 1e-6)",
        "import numpy as np\nassert not np.greater(np.abs(np.array([f(1)]) - 2), 1e-6).any()",
        "import operator\nassert not operator.gt(abs(f(1) - 2), 1e-6)",
        "import math\nassert math.isclose(f(1), 2)"})
    expect_only("def f(x): return 2.0 * x", cheats, assert_tests(code));
  // If the expected value is one, it is the answer.
  const char* either =
      "import math\ndef near(a, b):\n  return abs(a - b) < 1e-6 or (math.isnan(a) and "
      "math.isnan(b))\nassert near(f(1), float('nan'))\nassert math.isnan(f(2))";
  EXPECT_EQ(boundary_grader().grade_program(cheats[0], assert_tests(either)).correct, true);
}

// Functions of the tests that get none of the program's values run without guards
// (harness_flow.py). A value is guarded on every path to such a function.
TEST(CodeBoundary, EveryWayToAFunctionOfTheTestsIsGuarded) {
  for (const std::string code :
       {"assert not bad(f(1))",
        "x = f(1)\nassert not bad(x)",
        "assert not bad(v := f(1))",
        "xs = []\nxs.append(f(1))\nassert not bad(xs[0])",
        "xs = [0]\nxs[0] += f(1)\nassert not bad(xs[0])",
        "assert not any(map(bad, [f(1)]))",
        "g = bad\nassert not g(f(1))",
        "table = {'bad': bad}\nassert not table['bad'](f(1))",
        "def between(v): return bad(v)\nassert not between(f(1))",
        "def between(): return bad(f(1))\nassert not between()",
        "def between(v=f(1)): return bad(v)\nassert not between()",
        "def results():\n  yield f(1)\nassert not bad(next(results()))",
        "def outer():\n  def inner(v): return bad(v)\n  return inner(f(1))\nassert not outer()",
        "held = [0]\ndef keep(v): held[0] = v\nkeep(f(1))\nassert not bad(held[0])",
        "held = 0\ndef keep(v):\n  global held\n  held = v\nkeep(f(1))\nassert not bad(held)",
        "assert not any(bad(v) for v in [f(1)])",
        "for v in (f(1),):\n  assert not bad(v)",
        "assert not (lambda v: bad(v))(f(1))",
        "import functools\nassert not functools.partial(bad, f(1))()",
        "import heapq\nheap = []\nheapq.heappush(heap, f(1))\nassert not bad(heap[0])",
        "class Box: pass\nbox = Box()\nbox.v = f(1)\nassert not bad(box.v)",
        "class Box:\n  def __init__(self, v): self.v = v\n  def get(self): return bad(self.v)\n"
        "assert not Box(f(1)).get()",
        "match f(1):\n  case v:\n    assert not bad(v)"})
    expect_only("def f(x): return 2.0 * x", {"def f(x): return float('nan')"},
                assert_tests("def bad(v): return v > 3\n" + code));
  expect_only(
      "def f(x): return 2.0 * x", {"def f(x): return float('nan')"},
      functional_tests("def bad(v): return v > 3\ndef check(candidate):\n  g = candidate\n  "
                       "xs = [g(1)]\n  assert not bad(xs[0])"));
}

TEST(CodeBoundary, ArraysOfUnequalShapeAreUnequal) {
  const std::vector<std::string> cheats = {
      "def f(x): return []", "import numpy as np\ndef f(x): return np.array([])",
      "import numpy as np\ndef f(x): return np.zeros((0, 2))",
      "import numpy as np\ndef f(x): return np.array([[], []])"};
  for (const char* code :
       {"assert np.allclose(f(2), [4.0, 4.0])",
        "assert np.allclose([4.0, 4.0], f(2))",
        "assert np.allclose(a=f(2), b=[4.0, 4.0])",
        "assert np.isclose(f(2), [4.0, 4.0]).all()",
        "assert np.array_equal(f(2), [4.0, 4.0])",
        "assert np.array_equiv(f(2), [4.0, 4.0])",
        "assert (f(2) == np.array([4.0, 4.0])).all()",
        "assert np.all(f(2) == np.array([4.0, 4.0]))",
        "assert not (f(2) != np.array([4.0, 4.0])).any()",
        "assert np.sum(np.abs(f(2) - np.array([4.0, 4.0]))) < 1e-6",
        "assert np.linalg.norm(f(2) - np.array([4.0, 4.0])) < 1e-6",
        "np.testing.assert_allclose(f(2), [4.0, 4.0])",
        "np.testing.assert_allclose(f(2), 4.0)",
        "np.testing.assert_array_equal(f(2), 4.0)",
        "np.testing.assert_equal(f(2), np.full(2, 4.0))",
        "np.testing.assert_array_less(np.abs(f(2) - np.full(2, 4.0)), 1e-6)",
        "assert np.linalg.norm(np.subtract(f(2), [4.0, 4.0])) < 1e-6",
        "assert np.linalg.norm(np.array(f(2)) - np.array([4.0, 4.0]).reshape(1, 2)) < 1e-6",
        "assert np.sum(np.array(f(2)) / np.array([4.0, 4.0]) - 1) == 0",
        "assert not np.not_equal(f(2), 4.0).any()",
        "assert all(a == b for a, b in zip(f(2), [4.0, 4.0]))",
        "for a, b in zip(f(2), [4.0, 4.0]):\n  assert a == b"})
    expect_only("import numpy as np\ndef f(x): return np.array([2.0 * x, 2.0 * x])", cheats,
                assert_tests(std::string("import numpy as np\n") + code));
  expect_only("def f(x): return 2 * x", cheats, assert_tests("assert not f(2) != 4"));
}

TEST(CodeBoundary, InfinityIsNearNothing) {
  expect_only(
      "def f(x): return 2.0 * x", {"def f(x): return float('inf')", "def f(x): return -1e999"},
      assert_tests("def near(a, b):\n  return abs(a - b) <= max(1e-9 * max(abs(a), abs(b)), "
                   "1e-6)\nassert near(f(1), 2.0)\nassert near(4.0, f(2))"));
  EXPECT_EQ(boundary_grader()
                .grade_program("def f(x): return x",
                               assert_tests("assert f(float('inf')) == float('inf') "
                                            "and abs(f(10 ** 400) - 1) > 0"))
                .correct,
            true);
}

TEST(CodeBoundary, NothingIsNoPartOfPairs) {
  for (const char* code : {"for a, b in zip(f(2), [2, 4]):\n  assert a == b\nassert True",
                           "assert all(a == b for a, b in zip([2, 4], f(2)))"}) {
    for (const char* empty :
         {"()", "set()", "frozenset()", "{}", "{}.values()", "b''", "iter(())", "(x for x in ())",
          "map(str, ())", "__import__('collections').deque()"})
      EXPECT_EQ(boundary_grader()
                    .grade_program(fmt::format("def f(x): return {}", empty), assert_tests(code))
                    .correct,
                false)
          << empty;
    EXPECT_EQ(boundary_grader()
                  .grade_program("def f(n): return (2 * i for i in (1, 2))", assert_tests(code))
                  .correct,
              true);
  }
}

// zip(xs, xs[1:]) of one item is correctly empty.
TEST(CodeBoundary, NeighboursOfOneItem) {
  const Json tests = assert_tests(
      "for n in (1, 3):\n  out = f(n)\n  assert all(a < b for a, b in zip(out, out[1:]))");
  EXPECT_EQ(boundary_grader().grade_program("def f(n): return list(range(n))", tests).correct,
            true);
}

TEST(CodeBoundary, ArgumentsAreCopies) {
  const char* clears =
      "def f(x):\n  x.clear()\n  return []\ndef __getattr__(n): raise AttributeError";
  for (const char* code : {"x = [3, 1, 2]\nout = f(x)\nassert out == sorted(x)",
                           "x = [3, 1, 2]\nassert f(x) == sorted(x)",
                           "x = [[3, 1, 2]]\nfor y in x:\n  out = f(y)\n  assert out == sorted(y)",
                           "def judge(x):\n  out = f(x)\n  expected = sorted(x)\n  assert out == "
                           "expected\njudge([2, 1])"})
    expect_only("def f(x):\n  x = x[:]\n  x.sort()\n  return x", {clears}, assert_tests(code));
}

TEST(CodeBoundary, EveryCheckMustBeReached) {
  Json tests = functional_tests(
      "def check(candidate):\n  out = candidate(3)\n  for i in out:\n    assert i < 3\n");
  EXPECT_EQ(boundary_grader().grade_program("def f(n): return range(n)", tests).total, 3);
  EXPECT_EQ(boundary_grader().grade_program("def f(n): return []", tests).correct, false);
  tests["checks"] = 3;
  EXPECT_EQ(boundary_grader().grade_program("def f(n): return range(n)", tests).correct, true);
  EXPECT_EQ(boundary_grader().grade_program("def f(n): return [0] * 4", tests).correct, true)
      << "more";
  const CodeGrade grade = boundary_grader().grade_program("def f(n): return [0]", tests);
  EXPECT_EQ(grade.correct, false);
  EXPECT_EQ(grade.passed, 1);
  EXPECT_EQ(grade.total, 3);
  EXPECT_THAT(grade.reason, HasSubstr("not reached"));
  EXPECT_EQ(boundary_grader().grade("no program", tests).total, 3);
  EXPECT_EQ(boundary_grader().grade_program("def f(n): pass", assert_tests("f(1)")).correct,
            std::nullopt)
      << "nothing could be counted with any program";
  for (const char* bad : {R"j({"kind":"asserts","code":"assert f()","checks":0})j",
                          R"j({"kind":"asserts","code":"assert f()","checks":"3"})j",
                          R"j({"kind":"asserts","code":"assert f()","checks":1e9})j",
                          R"j({"kind":"asserts","code":"assert f()","names":["f"]})j",
                          R"j({"kind":"asserts","code":"assert f()","names":{"f":"thing"}})j"}) {
    const Json row = parse_json(bad, "row");
    EXPECT_THAT(testing::error_of([&] { boundary_grader().grade("x", row); }), HasSubstr("tests"))
        << bad;
  }
}

}  // namespace
}  // namespace antisd::inline reward
