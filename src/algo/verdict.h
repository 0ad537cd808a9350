// What a grader says of a response. One shape for every grader and everybody who reads it.
#pragma once

#include <optional>
#include <string>

namespace antisd::inline algo {

struct Verdict {
  std::optional<double> reward;  // 0 to 1; nothing where the grader failed, which is not a zero
  std::string reason;            // why there is none, or what is wrong
  int passed = 0, total = 0;     // tests, where the grader counts them
  std::string extracted = {};    // the answer that was graded; empty where the response has none
  bool error = false;            // the grader gave something that is no number from 0 to 1

  bool correct() const { return reward == 1.0; }
  bool failed() const { return !reward.has_value(); }
  // Where there is a reward: whether it is one.
  bool in_range() const { return failed() || (*reward >= 0 && *reward <= 1); }
};

inline Verdict right_verdict(std::string extracted = {}) {
  return {.reward = 1.0, .reason = "", .extracted = std::move(extracted)};
}

inline Verdict wrong_verdict(std::string extracted, std::string reason) {
  return {.reward = 0.0, .reason = std::move(reason), .extracted = std::move(extracted)};
}

// The one rule for a response that ended by its length: it is wrong whatever it says, and no
// grader looks at it.
inline Verdict truncated_verdict() {
  return wrong_verdict("", "truncated");
}

}  // namespace antisd::inline algo
