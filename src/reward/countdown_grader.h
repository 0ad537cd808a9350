// Grades the built-in task: combine the given numbers with + - * to reach the target. A response is
// a search in words, one chain per try; the last complete chain before the box counts.
//
//   const CountdownProblem problem = parse_countdown_problem("Numbers 4 11 3 6 target 29");
//   grade_countdown(problem, "Let 6 - 3 = 3 ; 3 * 11 = 33 ; 33 - 4 = 29 holds So boxed 29")
//       .correct();
//
// The box may instead hold an expression over the numbers: "boxed ( 6 - 3 ) * 11 - 4" or
// "\boxed{(6-3)*11-4}"; then only the expression counts.
#pragma once

#include <string_view>
#include <vector>

#include "io/json.h"
#include "reward/math/grader.h"

namespace antisd::inline reward {

struct CountdownProblem {
  std::vector<int> numbers;
  int target = 0;
};

struct CountdownOptions {
  bool at_most_once = false;  // a given number may be unused
  int max_result = 400;       // every result is in [0, max_result]
};

// Throws InputError if the text has no "Numbers ... target ...".
CountdownProblem parse_countdown_problem(std::string_view text);
// A string as above, or {"numbers": [4, 11, 3, 6], "target": 29}.
CountdownProblem read_countdown_problem(const Json& problem);

Verdict grade_countdown(const CountdownProblem& problem, std::string_view response,
                        const CountdownOptions& options = {});

}  // namespace antisd::inline reward
