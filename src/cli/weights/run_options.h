// What the commands that make a run directory have in common: their arguments, and the frame around
// their work.
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
  bool resume = false;             // go on from the newest whole checkpoint of the run directory
  std::vector<std::string> allow;  // keys or sections that may mean something else then
  std::string device = "auto";
  std::string dtype;
  int threads = 0;  // 0: as many as the machine has to spare, step by step
  std::int64_t seed = -1;
  bool quiet = false;
};

void add_run_options(CLI::App& app, RunOptions& options);

// The file and the overrides, resolved. InputError.
void read_config(const RunOptions& options, RunConfig& config);

// Where optim.warmup_steps is not shorter than the run.
void warn_of_warm_up(const RunConfig& config, const std::function<void(const std::string&)>& warn);

// What run.json says. `method` is the training method's name.
RunInfo run_info(at::Device device, at::ScalarType dtype, const std::string& method);

// Newer checkpoints that are not whole, each a warning.
void warn_of_skipped(Recorder& recorder, const NewestCheckpoint& newest);
// The newest whole checkpoint of the run directory, if any; says which it is, and every difference
// between the configuration that the run had and that of now. InputError for one that changes what
// the run means and is not in options.allow.
std::optional<FoundCheckpoint> find_checkpoint_to_resume(Recorder& recorder,
                                                         const RunConfig& config,
                                                         const RunOptions& options);

// Locks config.record.dir, refuses one that holds a run unless resuming, and writes down how `work`
// ended, whatever it threw. `work` is given the recorder and the last step done, which it keeps up
// to date, and returns the exit status.
using RunWork = std::function<int(Recorder& recorder, std::int64_t& last_step)>;
int in_run_directory(const RunConfig& config, bool resume, Console& console, const RunWork& work);

}  // namespace antisd::inline cli
