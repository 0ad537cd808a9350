// Grades code. The last python block of a response runs in a sandbox (docs/sandbox.md) against
// tests:
//
//   CodeGrader grader({});
//   CodeGrade grade = grader.grade("```python\ndef f(x): return x + 1\n```",
//                                  parse_json(R"({"kind":"asserts","code":"assert f(1) == 2"})",
//                                             "row"));
//   // grade.correct == true, grade.passed == 1, grade.total == 1
//
// kinds: "asserts" {code}, "functional" {code, entry_point}, "stdio" {cases: [{input, output}]}.
// Any number of threads may call grade(); at most `workers` run a program at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "io/json.h"
#include "reward/code/interpreter_pool.h"

namespace antisd::inline reward {

struct CodeGrade {
  std::optional<bool> correct;  // nothing: the grader failed, not the program; see reason
  int passed = 0;
  int total = 0;  // the reward is passed / total
  std::string reason;
  Json tests = Json::array();  // {"passed": bool, "reason": text} for each test
};

class CodeGrader {
 public:
  // Throws InputError if this machine cannot isolate programs (and sandbox is not "none") or has no
  // python.
  explicit CodeGrader(const CodeGraderOptions& options);

  // Throws InputError if `tests` is not one of the kinds.
  CodeGrade grade(std::string_view response, const Json& tests);
  // Takes the program itself instead of a response that contains it.
  CodeGrade grade_program(std::string_view source, const Json& tests);

  Confinement confinement() const { return pool_.confinement(); }

 private:
  InterpreterPool pool_;
};

}  // namespace antisd::inline reward
