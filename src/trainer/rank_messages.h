// What ranks tell each other about a step, as messages (dist/message.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "algo/response.h"
#include "dist/communicator.h"
#include "dist/message.h"
#include "inference/together.h"
#include "reward/grading_stage.h"
#include "trainer/objective.h"

namespace antisd::inline trainer {

// What a rank sampled and graded of its share of a step's prompts, or all of it.
struct Rollouts {
  ResponseBatch batch;  // filled up to the verdicts
  GradeCounts grades;
  std::vector<std::string> warnings;  // of the grader
};

void write(MessageWriter& writer, const MicroBatchResult& result);
void write(MessageWriter& writer, const Rollouts& rollouts);

// Micro-batch i was rank i mod size()'s. Afterwards every rank has all results.
void exchange_results(Communicator& ranks, std::vector<MicroBatchResult>& results);

// The rollouts of all ranks, whose shares follow each other.
Rollouts join_rollouts(std::span<const std::string> messages);

}  // namespace antisd::inline trainer
