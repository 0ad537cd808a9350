// One face for every reward: a response and what is known about its problem in, a number from 0 to
// 1 out, or nothing with a reason. A grader that failed is not a zero.
//
//   const std::unique_ptr<Grader> grader = make_grader(config.reward);
//   const Score score = grader->score({.response = "... \\boxed{42}", .answer = "42"});
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "io/json.h"

namespace antisd {

struct GradeRequest {
  std::string response;
  std::string answer;  // math
  Json tests;          // code
  Json problem;        // countdown: the text or {"numbers", "target"}; command: passed on
};

struct Score {
  std::optional<double> reward;  // correct means exactly 1
  std::string reason;            // why there is none, or what is wrong
  int passed = 0, total = 0;     // tests, where the kind counts them
  std::string extracted = {};    // the answer that was graded; empty where the response has none
  bool error = false;            // the grader gave something that is no number from 0 to 1
};

class Grader {
 public:
  virtual ~Grader() = default;
  // Any number of threads may call it. InputError where the request cannot be graded by this kind
  // at all.
  virtual Score score(const GradeRequest& request) = 0;
  // Asks once, before a run depends on it. RunError where no grade can be expected at all.
  virtual void probe(const GradeRequest&) {}
  // What the user should know and was not told yet, from any thread that graded.
  virtual std::vector<std::string> take_warnings() { return {}; }
};

// InputError where the machine lacks what the kind needs (an interpreter, isolation).
std::unique_ptr<Grader> make_grader(const RewardConfig& config);

}  // namespace antisd
