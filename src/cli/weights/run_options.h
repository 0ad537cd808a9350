// Common to the commands that create a run directory: their arguments, and the code around their
// work.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "config/run_config.h"
#include "core/thread_pool.h"
#include "run/checkpoint/checkpoint.h"
#include "run/recorder.h"

namespace antisd::inline cli {

struct RunOptions {
  std::vector<std::string> arguments;  // a file, then key=value
  bool resume = false;                 // continue from the newest complete checkpoint
  std::vector<std::string> allow;      // keys or sections that may then change meaning
  std::string device = "auto";
  std::string dtype;
  int threads = 0;  // 0: as many as the machine has free, chosen every step
  std::int64_t seed = -1;
  bool quiet = false;
  std::string processes;  // --processes
};

void add_run_options(CLI::App& app, RunOptions& options);

// Reads the file and the overrides and resolves them; a name of a model or data set gets the
// revision that the cache holds. InputError.
void read_config(const RunOptions& options, RunConfig& config);

// Warns if optim.warmup_steps is not shorter than the run.
void warn_of_warm_up(const RunConfig& config, const std::function<void(const std::string&)>& warn);

// The content of run.json. `method` is the training method's name.
RunInfo run_info(at::Device device, at::ScalarType dtype, const std::string& method);

// Warns of newer checkpoints that are incomplete.
void warn_of_skipped(Recorder& recorder, const NewestCheckpoint& newest);
// The newest complete checkpoint of the run directory, if any. Reports which one, and every
// difference between the run's configuration and the present one. InputError for a difference that
// changes the run's meaning and is not in options.allow.
std::optional<FoundCheckpoint> find_checkpoint_to_resume(Recorder& recorder,
                                                         const RunConfig& config,
                                                         const RunOptions& options);

// What rank 0 has found, on every rank: the others do not search. InputError of rank 0 on all.
std::optional<FoundCheckpoint> found_by_first(
    Communicator& ranks, const std::function<std::optional<FoundCheckpoint>()>& find);

// Rank 0 locks config.record.dir, rejects one that holds a run unless resuming, and records how
// `work` ended, whatever it threw. `work` gets the recorder and the last step done, which it keeps
// up to date, and returns the exit status.
using RunWork = std::function<int(Recorder& recorder, std::int64_t& last_step)>;
int in_run_directory(const RunConfig& config, bool resume, Console& console, Communicator& ranks,
                     const RunWork& work);

}  // namespace antisd::inline cli
