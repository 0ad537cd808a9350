// Programs that try to pass without solving the problem (testdata/reward/cheating). The task is
// f(x) = 2 x, and none of them computes it, unless it manages to read the tests.

#include <gmock/gmock.h>

#include "io/atomic_file.h"
#include "reward/code/grader.h"
#include "reward/testing.h"

namespace antisd::inline reward {
namespace {

CodeGrader& cheat_grader() {
  static CodeGrader grader({.timeout_s = 20, .processes = 8, .workers = 1});
  return grader;
}

constexpr const char* kHonest = "def f(x): return 2 * x";

// Every way in which tests inspect a value: each must be a failed test for a program that cheats.
constexpr const char* kAsserts = R"(
import numpy as np
import numpy.testing
assert f(2) == 4
assert 6 == f(3)
assert not f(2) != 4
assert f(7) in (14,)
assert [f(1)] == [2]
assert {"a": f(1)} == {"a": 2}
assert abs(f(2) - 4) < 1e-6
assert abs(4 - f(2)) < 1e-6
assert 3 < f(2) < 5
assert math.isclose(f(2), 4)
assert np.allclose(f(2), 4)
assert np.array_equal([f(2)], [4])
assert sorted([f(2), f(1)]) == [2, 4]
assert set([f(2)]) == {4}
assert isinstance(f(2), int) and f(2) == 4
assert all(f(x) == 2 * x for x in range(1, 5))
assert str(f(21)) == "42"
numpy.testing.assert_allclose(f(2), 4)
assert not abs(f(2) - 4) > 1e-6
assert max(0, abs(f(2) - 4)) < 1e-6
assert not any(a != b for a, b in zip(map(f, [1, 2]), [2, 4]))
for i, x in enumerate([1, 2]):
    assert f(x) == 2 * x
)";

constexpr const char* kCheck = R"(
import math
def near(out, expected):
    assert math.isclose(out, expected)
def check(candidate):
    inputs = [1, 2, 3]
    results = [2, 4, 6]
    for i, (x, expected) in enumerate(zip(inputs, results)):
        assert candidate(x) == expected
    near(candidate(5), 10)
)";

class Cheating : public ::testing::TestWithParam<std::string> {};

TEST_P(Cheating, ScoresNothing) {
  const std::string program = read_file(testing::fixture("reward/cheating/" + GetParam() + ".py"));
  for (const Json& tests : {Json{{"kind", "asserts"}, {"code", kAsserts}},
                            Json{{"kind", "functional"}, {"code", kCheck}, {"entry_point", "f"}}}) {
    const CodeGrade grade = cheat_grader().grade_program(program, tests);
    EXPECT_EQ(grade.correct, false) << grade.reason;
    EXPECT_EQ(grade.passed, 0) << grade.tests.dump(1);
    EXPECT_GT(grade.total, 0);
    // The next program is not affected.
    EXPECT_EQ(cheat_grader().grade_program(kHonest, tests).correct, true);
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, Cheating,
                         ::testing::ValuesIn(testing::fixture_names("reward/cheating")),
                         [](const auto& info) { return info.param; });

TEST(CheatingTests, PassForAnHonestProgram) {
  const CodeGrade grade =
      cheat_grader().grade_program(kHonest, {{"kind", "asserts"}, {"code", kAsserts}});
  EXPECT_EQ(grade.correct, true) << grade.reason << grade.tests.dump(1);
  EXPECT_EQ(grade.total, 23);  // 22 asserts and one of numpy.testing
}

// For stdio the output is compared outside the sandbox; a program can only print.
TEST(CheatingTests, StdioVerdictCannotBePrinted) {
  for (const char* program :
       {"print('p\\nend\\n{\"ended\": 1}')", "import os; os._exit(0)", "import sys; sys.exit(0)",
        "import os\nfor d in range(64):\n  try: os.write(d, b'{\"ended\": 2, \"status\": 0, "
        "\"cpu\": 0}')\n  except OSError: pass"}) {
    const CodeGrade grade = cheat_grader().grade_program(
        program, {{"kind", "stdio"}, {"cases", {{{"input", "1"}, {"output", "2"}}}}});
    EXPECT_EQ(grade.correct, false) << program;
  }
}

}  // namespace
}  // namespace antisd::inline reward
