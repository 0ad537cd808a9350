// The results of one step: its metrics and, on request, a row per rollout.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "algo/gate.h"
#include "io/json.h"
#include "run/metrics/metric_set.h"
#include "trainer/open_groups.h"
#include "trainer/updater.h"

namespace antisd::inline trainer {

// Seconds of the phases of a step.
struct StepTimes {
  double generate = 0;   // sampling, with the grading that runs at the same time
  double reward = 0;     // waiting for grades after the last response
  double score = 0;      // contexts and the passes over them
  double advantage = 0;  // gate and shaping
  double update = 0;
  double step = 0;   // the whole step, without saving
  double save = 0;   // waiting for the checkpoint before this step, if any
  double ranks = 0;  // waiting for other ranks and for what they send, within the phases above
};

// Over the ranks of a run.
struct RankTimes {
  int ranks = 1;
  StepTimes most = {}, mean = {};
  double exchange = 0;  // of the waits: what messages and memory took once all ranks were there
};

// Peaks of this rank's tensors in GiB, where they are known by phase.
struct PhaseMemory {
  std::optional<double> generate = {}, score = {}, update = {};
};

// What dynamic sampling did in a step (rollout.refill).
struct RefillCounts {
  std::int64_t rounds = 0, groups = 0;  // groups: those that were replaced
  std::int64_t discarded_tokens = 0;    // of responses that were sampled and dropped
};

// All data of a step, filled as it proceeds.
struct StepRecord {
  std::int64_t step = 0;          // from 1: the number of steps done after it
  std::uint32_t random_step = 0;  // TrainState::random_step() in it
  double lr = 0;
  std::int64_t max_prompt_tokens = 0;  // longer prompts are left out of the data
  PromptBatch prompts = {};            // x
  ResponseBatch batch = {};            // y, R, c, t, A, s: see algo/response.h
  RefillCounts refill = {};
  std::optional<std::int64_t> failed_contexts = {};  // responses; of context.command
  std::optional<PartialCounts> partial = {};         // with rollout.partial
  std::vector<OpenGroup> carried = {};               // into the next step; moved there at its end
  GateReading gate = {};                             // g
  Shaping shaping = {};                              // the rules for A_{i,t}
  UpdateResult update = {};
  RankTimes times = {};
  PhaseMemory memory = {};
};

// The metrics of docs/conventions.
MetricSet step_metrics(const StepRecord& record);

// One row of rollouts/step-NNNNNN.jsonl. Unknown values (no teacher, a failed grade, a stopped
// step) are null.
Json rollout_row(const StepRecord& record, std::size_t number);

// The step's first response with its problem and reward, as a line of log.txt.
std::string sample_line(const StepRecord& record);

}  // namespace antisd::inline trainer
