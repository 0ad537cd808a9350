// Is the answer in a response equal to the known answer? Three-valued, exact where it can be, and
// bounded in time whatever the text.
//
//   grade_math("\\frac{1}{2}", "... so the result is \\boxed{0.5}.").verdict;  // kCorrect
//   grade_math("1/3", "\\boxed{.3333}").verdict;                              // kWrong
//
// A response without an answer is wrong. What cannot be decided (too large, too deep, out of time)
// is undecided with a reason, never wrong. answer_compare.h lists the conventions of equality.
#pragma once

#include <string>
#include <string_view>

namespace antisd {

enum class Verdict { kCorrect, kWrong, kUndecided };

struct Grade {
  Verdict verdict = Verdict::kUndecided;
  std::string extracted;  // the response's answer as it was found; empty where there is none
  std::string reason;     // why undecided, or why wrong where no comparison was made
};

struct MathGraderOptions {
  bool last_number = false;        // the last number answers where nothing else does
  double relative_tolerance = 0;   // accept numbers this close to the gold answer; 0: exact
  bool raw = false;                // the response is the answer itself
  bool identical_shortcut = true;  // equal text needs no mathematics
  int budget_ms = 50;
};

// Pure and thread-safe.
Grade grade_math(std::string_view answer, std::string_view response,
                 const MathGraderOptions& options = {});

}  // namespace antisd
