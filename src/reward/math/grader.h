// Whether the answer in a response equals the known answer: three-valued, exact if possible, and
// limited in time for any text.
//
//   grade_math("\\frac{1}{2}", "... so the result is \\boxed{0.5}.").correct();
//   grade_math("1/3", "\\boxed{.3333}").reward;  // 0
//
// A response without an answer is wrong. What cannot be decided (too large, too deep, out of time)
// has no reward but a reason, and is never wrong. answer_compare.h lists the conventions of
// equality.
#pragma once

#include <string>
#include <string_view>

#include "algo/verdict.h"

namespace antisd::inline reward {

struct MathGraderOptions {
  bool last_number = false;        // the last number is the answer if there is no other
  double relative_tolerance = 0;   // accept numbers this close to the gold answer; 0: exact
  bool raw = false;                // the response is the answer itself
  bool identical_shortcut = true;  // identical text needs no mathematics
  int budget_ms = 50;
};

// Pure and thread-safe.
Verdict grade_math(std::string_view answer, std::string_view response,
                   const MathGraderOptions& options = {});

}  // namespace antisd::inline reward
