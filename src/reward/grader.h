// The common interface of all rewards: a response and its problem in, a number out, or nothing with
// a reason. A failed grader does not give 0.
//
//   const std::unique_ptr<Grader> grader = make_grader(config.reward);
//   const Verdict verdict = grader->grade({.response = "... \\boxed{42}", .answer = "42"});
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "algo/response.h"
#include "algo/verdict.h"
#include "config/run_config.h"
#include "data/problem.h"
#include "io/json.h"

namespace antisd::inline reward {

struct GradeRequest {
  std::string response;
  std::string answer;       // math
  Json tests;               // code
  Json problem;             // countdown: the text or {"numbers", "target"}; command: passed on
  Json row = {};            // command, python: every column of the problem's row, or null
  std::string id = {};      // command: the problem's id
  Json messages = {};       // python: the problem as chat messages, or null if it is text
  std::string source = {};  // python: the problem's
  std::vector<TokenId> ids = {};  // python, length: the response's tokens
  bool has_ids = false;           // false: nobody knows them
};

// The request for a response to a problem.
GradeRequest grade_request(const Problem& problem, const Response& response);

class Grader {
 public:
  virtual ~Grader() = default;
  // Any number of threads may call it. InputError if this kind cannot grade the request at all.
  virtual Verdict grade(const GradeRequest& request) = 0;
  // Whether the responses of a group are to be graded together.
  virtual bool grades_groups() const { return false; }
  // A verdict for each. By itself it grades one after the other.
  virtual std::vector<Verdict> grade_group(std::span<const GradeRequest> requests);
  // Sends one request before a run starts. RunError if no grade can be expected.
  virtual void probe(const GradeRequest&) {}
  // Warnings that the user has not seen yet, from any thread that graded.
  virtual std::vector<std::string> take_warnings() { return {}; }
};

// Whether reward.kind or one of reward.terms is of this kind.
bool uses_grader(const RewardConfig& config, const std::string& kind);
// Whether a grader is given every column of a problem's row (Problem::row).
bool gets_whole_rows(const RewardConfig& config);

// With its terms. InputError if the machine lacks what a kind needs (an interpreter, isolation), or
// if a user's function cannot be loaded.
std::unique_ptr<Grader> make_grader(const RewardConfig& config);

}  // namespace antisd::inline reward
