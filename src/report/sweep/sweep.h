// A grid of training runs as separate processes, each with its own run directory.
//
//   const std::vector<PlannedRun> runs = plan_sweep(settings);   // every configuration is checked
//   const SweepEnd end = run_sweep(settings, runs, console, table, stop);
//
// A stopped sweep continues when it is started again: finished runs are not repeated, the others
// are resumed.
#pragma once

#include <functional>

#include "report/sweep/grid.h"
#include "report/sweep/job_queue.h"
#include "report/sweep/live_table.h"
#include "run/metrics/console.h"

namespace antisd::inline report {

struct SweepSettings {
  std::filesystem::path program;  // this one
  std::string config;             // a TOML file; empty: the defaults
  Grid grid;
  std::filesystem::path directory;  // the runs are below it
  JobLimits limits;
  int threads = 1;    // of one rank of a run
  int processes = 1;  // ranks of one run
  std::string device = "auto";
};

struct PlannedRun {
  GridRun grid;
  std::filesystem::path directory;
  std::int64_t steps = 0;
  bool has_begun = false;
  bool is_done = false;
};

// InputError if a configuration is wrong, or a directory holds a run of another configuration.
std::vector<PlannedRun> plan_sweep(const SweepSettings& settings);

struct FailedRun {
  std::string name, message;
};

struct SweepEnd {
  bool stopped = false;
  std::vector<FailedRun> failed;
};

// A failed run does not stop the others.
SweepEnd run_sweep(const SweepSettings& settings, const std::vector<PlannedRun>& runs,
                   Console& console, LiveTable& table, const std::function<bool()>& stop);

}  // namespace antisd::inline report
