#include "reward/code_grader.h"

#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd {
namespace {

CodeGrader& grader() {
  static CodeGrader grader({.timeout_s = 4, .workers = 2});
  return grader;
}

TEST(CodeGrader, CountsTopLevelAsserts) {
  const CodeGrade grade = grader().grade(
      "```python\ndef f(x):\n    return x + 1\n```",
      {{"kind", "asserts"}, {"code", "assert f(1) == 2\nassert f(2) == 4\nassert f(3) == 4"}});
  EXPECT_EQ(grade.correct, false) << grade.reason;
  EXPECT_EQ(grade.passed, 2);
  EXPECT_EQ(grade.total, 3);
}

TEST(CodeGrader, Stdio) {
  const CodeGrade grade =
      grader().grade("```python\nprint(int(input()) * 2)\n```",
                     {{"kind", "stdio"}, {"cases", {{{"input", "2\n"}, {"output", "4\n"}}}}});
  EXPECT_EQ(grade.correct, true) << grade.reason;
}

}  // namespace
}  // namespace antisd
