// A training run from its configuration: the objects, the run directory, resuming.
#pragma once

#ifdef ANTISD_TORCH

#include <functional>
#include <string>

#include "config/run_config.h"
#include "core/thread_pool.h"
#include "metrics/console.h"

namespace antisd {

struct TrainingOptions {
  bool resume = false;  // go on from the newest whole checkpoint of the run directory
  std::string device = "auto";
  int threads = available_threads();
  std::string command_line;  // for run.json
};

// Trains in config.record.dir until train.steps or until `stop` says so; then the last step is
// saved. Returns the exit status: 0, or 130 where it was stopped. `config` is resolved.
int run_training(const RunConfig& config, const TrainingOptions& options, Console& console,
                 const std::function<bool()>& stop);

}  // namespace antisd

#endif
