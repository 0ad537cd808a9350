// A grader's verdict on a response: one struct for all graders and all readers.
#pragma once

#include <cmath>
#include <map>
#include <optional>
#include <string>

namespace antisd::inline algo {

// The name of the grader's own reward in Verdict::parts.
inline constexpr const char* kGraderPart = "grader";

struct Verdict {
  std::optional<double> reward;  // finite; nothing (not 0) if the grader failed
  std::string reason;            // why there is no reward, or what is wrong
  int passed = 0, total = 0;     // tests, where the grader counts them
  std::string extracted = {};    // the answer that was graded; empty if none was found
  // Whether the response counts as correct, where reward.correct_at or a sum decides it. Nothing: a
  // reward of 1 does.
  std::optional<bool> right = {};
  // What the reward is the weighted sum of: the grader's own reward and those of reward.terms.
  // Empty without terms.
  std::map<std::string, double> parts = {};

  bool correct() const { return right.value_or(reward >= 1.0); }
  bool failed() const { return !reward.has_value(); }
  // Whether the reward, if any, is a finite number.
  bool usable() const { return failed() || std::isfinite(*reward); }
  // The reward before terms were added to it.
  std::optional<double> own_reward() const {
    const auto own = parts.find(kGraderPart);
    return own == parts.end() ? reward : own->second;
  }
};

inline Verdict right_verdict(std::string extracted = {}) {
  return {.reward = 1.0, .reason = "", .extracted = std::move(extracted)};
}

inline Verdict wrong_verdict(std::string extracted, std::string reason) {
  return {.reward = 0.0, .reason = std::move(reason), .extracted = std::move(extracted)};
}

// The rule for a truncated response: it is wrong whatever it says, and no grader sees it.
inline Verdict truncated_verdict(double reward = 0) {
  Verdict verdict{.reward = reward, .reason = "truncated"};
  if (verdict.correct()) verdict.right = false;
  return verdict;
}

}  // namespace antisd::inline algo
