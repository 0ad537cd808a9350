// The common interface of all rewards: a response and its problem in, a number from 0 to 1 out, or
// nothing with a reason. A failed grader does not give 0.
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
  std::string answer;   // math
  Json tests;           // code
  Json problem;         // countdown: the text or {"numbers", "target"}; command: passed on
  Json row = {};        // command: every column of the problem's row, or null
  std::string id = {};  // command: the problem's id
};

// The request for a response to a problem.
GradeRequest grade_request(const Problem& problem, std::string response);

class Grader {
 public:
  virtual ~Grader() = default;
  // Any number of threads may call it. InputError if this kind cannot grade the request at all.
  virtual Verdict grade(const GradeRequest& request) = 0;
  // Sends one request before a run starts. RunError if no grade can be expected.
  virtual void probe(const GradeRequest&) {}
  // Warnings that the user has not seen yet, from any thread that graded.
  virtual std::vector<std::string> take_warnings() { return {}; }
};

// Whether the kind is given every column of a problem's row (Problem::row).
bool gets_whole_rows(const RewardConfig& config);

// InputError if the machine lacks what the kind needs (an interpreter, isolation).
std::unique_ptr<Grader> make_grader(const RewardConfig& config);

}  // namespace antisd::inline reward
