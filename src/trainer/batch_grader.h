// Grading of a step's responses while the rest still decodes.
//
//   grader.start(p, prompts.prompts[p], group);      // as each group ends
//   grader.finish(batch);                            // every rollout has its grade
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "batch/prompts.h"
#include "batch/rollouts.h"
#include "reward/grading_stage.h"

namespace antisd {

class BatchGrader {
 public:
  // Borrows the grader.
  BatchGrader(Grader& grader, const RewardConfig& config)
      : stage_(grader, {.workers = static_cast<int>(config.workers)}) {}

  // A truncated response is wrong whatever it says; it is not looked at.
  void start(std::size_t group, const Prompt& prompt, const RolloutGroup& rollouts);
  // Waits, and writes the grades. RunError that names the response where a reward is not in [0, 1].
  void finish(const PromptBatch& prompts, RolloutBatch& batch);

 private:
  GradingStage stage_;
  std::vector<std::pair<std::size_t, std::size_t>> submitted_;  // group and sample
};

}  // namespace antisd
