// One face for every reward: a response and what is known about its problem in, a number from 0 to
// 1 out, or nothing with a reason. A grader that failed is not a zero.
//
//   const std::unique_ptr<Grader> grader = make_grader(config.reward);
//   const Verdict verdict = grader->grade({.response = "... \\boxed{42}", .answer = "42"});
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "algo/verdict.h"
#include "config/run_config.h"
#include "data/problem.h"
#include "io/json.h"

namespace antisd::inline reward {

struct GradeRequest {
  std::string response;
  std::string answer;  // math
  Json tests;          // code
  Json problem;        // countdown: the text or {"numbers", "target"}; command: passed on
};

// What is asked about a problem.
GradeRequest grade_request(const Problem& problem, std::string response);

class Grader {
 public:
  virtual ~Grader() = default;
  // Any number of threads may call it. InputError where the request cannot be graded by this kind
  // at all.
  virtual Verdict grade(const GradeRequest& request) = 0;
  // Asks once, before a run depends on it. RunError where no grade can be expected at all.
  virtual void probe(const GradeRequest&) {}
  // What the user should know and was not told yet, from any thread that graded.
  virtual std::vector<std::string> take_warnings() { return {}; }
};

// InputError where the machine lacks what the kind needs (an interpreter, isolation).
std::unique_ptr<Grader> make_grader(const RewardConfig& config);

}  // namespace antisd::inline reward
