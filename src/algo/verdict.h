// A grader's verdict on a response: one struct for all graders and all readers.
#pragma once

#include <optional>
#include <string>

namespace antisd::inline algo {

struct Verdict {
  std::optional<double> reward;  // 0 to 1; nothing (not 0) if the grader failed
  std::string reason;            // why there is no reward, or what is wrong
  int passed = 0, total = 0;     // tests, where the grader counts them
  std::string extracted = {};    // the answer that was graded; empty if none was found
  bool error = false;            // the grader returned something other than a number from 0 to 1

  bool correct() const { return reward == 1.0; }
  bool failed() const { return !reward.has_value(); }
  // Whether the reward, if any, is from 0 to 1.
  bool in_range() const { return failed() || (*reward >= 0 && *reward <= 1); }
};

inline Verdict right_verdict(std::string extracted = {}) {
  return {.reward = 1.0, .reason = "", .extracted = std::move(extracted)};
}

inline Verdict wrong_verdict(std::string extracted, std::string reason) {
  return {.reward = 0.0, .reason = std::move(reason), .extracted = std::move(extracted)};
}

// The rule for a truncated response: it is wrong whatever it says, and no grader sees it.
inline Verdict truncated_verdict() {
  return wrong_verdict("", "truncated");
}

}  // namespace antisd::inline algo
