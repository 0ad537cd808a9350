// A training run from its configuration: its objects, the run directory, resuming.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "algo/method.h"
#include "cli/weights/model_parts.h"
#include "cli/weights/run_options.h"
#include "config/run_config.h"
#include "data/prompt_set.h"
#include "dist/communicator.h"
#include "dist/place.h"
#include "model/model_shape.h"
#include "run/metrics/console.h"

namespace antisd::inline cli {

// The problems of data.train. Token counts of every prompt, also dropped ones, go to `lengths`.
PromptSet load_problems(const RunConfig& config, const PromptRenderer& renderer,
                        PromptSetReport& report, std::vector<std::int64_t>* lengths = nullptr);

void warn_of_limits(const RunConfig& config, const Method& method, const ModelShape& shape,
                    const Warn& warn);

// Where a run's rank stands, and how it reaches the others.
struct RunRanks {
  const Place& place;
  Communicator& ranks;
};

// Trains in config.record.dir until train.steps or until `stop` returns true; then the last step is
// saved. Returns the exit status: 0, or 130 if stopped. `config` must be resolved.
int run_training(const RunConfig& config, const RunOptions& options, Console& console,
                 const RunRanks& run, const std::function<bool()>& stop);

}  // namespace antisd::inline cli
