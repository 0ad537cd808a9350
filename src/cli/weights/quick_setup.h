// How `quickstart` finds its settings: machine, model and data are examined, the rest is chosen
// (plan/quick_choice.h) and written to run.toml, which later starts read.
//
//   QuickRequest request{.model = "Qwen3-0.6B", .data = "problems.jsonl"};
//   RunConfig config;
//   if (request.is_set_up()) {
//     read_setup(request, config, console);
//   } else {
//     write_setup(request, choose_setup(request, config, console), config, console);
//   }
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/weights/quick_data.h"
#include "cli/weights/run_options.h"
#include "config/run_config.h"
#include "run/metrics/console.h"

namespace antisd::inline cli {

struct QuickRequest {
  std::string model = "Qwen/Qwen3-0.6B", data = "openai/gsm8k", directory = "runs/quickstart";
  bool named_model = false, named_data = false;  // by the user
  std::int64_t steps = 0;                        // 0: chosen
  std::vector<std::string> assignments = {};     // key=value
  RunOptions run = {};                           // device, threads, quiet

  std::filesystem::path file(const char* name) const {
    return std::filesystem::path(directory) / name;
  }
  std::filesystem::path settings() const { return file("run.toml"); }
  bool is_set_up() const { return std::filesystem::exists(settings()); }
};

struct QuickSetup {
  std::string toml;  // run.toml
  QuickSplit split;
};

// Examines and chooses, tells what it found, and writes nothing. InputError for a model or data
// that are not here, and for a model that does not fit.
QuickSetup choose_setup(const QuickRequest& request, RunConfig& config, Console& console);

// Writes the data, the plan (plan.txt) and at last run.toml. What dry_run() finds wrong is an
// error.
void write_setup(const QuickRequest& request, const QuickSetup& setup, const RunConfig& config,
                 Console& console);

// What was chosen before stays, also where a user has edited it. InputError if the folder was made
// for another model or other data.
void read_setup(const QuickRequest& request, RunConfig& config, Console& console);

}  // namespace antisd::inline cli
