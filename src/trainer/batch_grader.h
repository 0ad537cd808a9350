// Grading of a step's responses while the rest still decodes.
//
//   grader.start(p, prompts.prompts[p], group);      // as each group ends
//   grader.finish(batch);                            // every rollout has its grade
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "algo/prompts.h"
#include "algo/rollouts.h"
#include "core/error.h"
#include "data/problem.h"
#include "reward/grading_stage.h"

namespace antisd {

// A reward that is no number from 0 to 1, and the response it was given for.
class BadRewardError : public RunError {
 public:
  BadRewardError(const std::string& what, std::size_t rollout)
      : RunError(what, {.where = "reward", .remedy = "mend the grader and go on with --resume"}),
        rollout(rollout) {}
  const std::size_t rollout;
};

// What a step asked of the grader: truncated responses are not among it.
struct GradeCounts {
  std::int64_t asked = 0, graded = 0;
  std::string last_reason;  // why one has no grade
};

// What the grader is asked about a problem.
GradeRequest grade_request(const Problem& problem, std::string response);

class BatchGrader {
 public:
  // Borrows the grader.
  BatchGrader(Grader& grader, const RewardConfig& config)
      : stage_(grader, {.workers = static_cast<int>(config.workers)}) {}

  // A truncated response is wrong whatever it says; it is not looked at.
  void start(std::size_t group, const Prompt& prompt, const RolloutGroup& rollouts);
  // Waits, and writes the grades. BadRewardError where one cannot be.
  GradeCounts finish(RolloutBatch& batch);

 private:
  GradingStage stage_;
  std::vector<std::pair<std::size_t, std::size_t>> submitted_;  // group and sample
};

}  // namespace antisd
