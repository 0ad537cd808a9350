// Terms of a reward that look at the text alone (reward.terms): its form and its length.
//
//   FormatTerm form("<think>.*</think>.*");             // 1 if the whole response has that form
//   LengthTerm length("tokens 1000 4000");              // 0 up to 1000 tokens, 1 from 4000 on
//   Verdict verdict = length.grade({.response = "..."});
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "reward/grader.h"

namespace antisd::inline reward {

// 1 if the regular expression (PCRE2's, close to Python's) matches the whole response, otherwise 0.
// A dot matches newlines too.
class FormatTerm : public Grader {
 public:
  explicit FormatTerm(const std::string& pattern);  // InputError if it is not valid
  ~FormatTerm() override;
  // No grade where the pattern backtracks too much.
  Verdict grade(const GradeRequest& request) override;

 private:
  struct Pattern;
  std::unique_ptr<const Pattern> pattern_;
};

// 0 up to one length, then linear up to 1 at another: with a negative weight a penalty.
class LengthTerm : public Grader {
 public:
  // "tokens FROM TO" or "characters FROM TO" (code points). InputError otherwise.
  explicit LengthTerm(const std::string& range);
  Verdict grade(const GradeRequest& request) override;

 private:
  bool in_tokens_ = false;
  double from_ = 0, to_ = 0;
};

}  // namespace antisd::inline reward
