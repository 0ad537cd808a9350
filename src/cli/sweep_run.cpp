#include "cli/sweep_run.h"

#include <fstream>
#include <iostream>

#include <fmt/format.h>

#include "cli/interrupt.h"
#include "io/atomic_file.h"
#include "sweep/arms.h"

namespace antisd {

namespace fs = std::filesystem;

fs::path own_program() {
  return fs::read_symlink("/proc/self/exe");
}

std::int64_t default_memory_limit() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:")) return std::atoll(line.c_str() + 13) * 1024 / 10 * 9;
  }
  return 0;
}

int sweep_and_report(SweepSettings settings, const std::string& report, Console& console,
                     bool quiet, const std::function<bool()>& stop) {
  settings.program = own_program();
  const std::vector<PlannedRun> runs = plan_sweep(settings);
  std::int64_t done = 0, begun = 0;
  for (const PlannedRun& run : runs) {
    done += run.is_done ? 1 : 0;
    begun += run.has_begun && !run.is_done ? 1 : 0;
  }
  console.info(fmt::format("{} runs in {}: {} finished before, {} go on, {} at a time", runs.size(),
                           settings.directory.string(), done, begun, settings.limits.jobs));
  LiveTable table({.descriptor = 2, .quiet = quiet});
  const SweepEnd end = run_sweep(settings, runs, console, table, stop);
  if (end.stopped) {
    console.info("stopped; the same command goes on from here");
    return kInterruptedStatus;
  }
  std::cout << outcome_table(read_arms(runs), "grpo");
  (void)report;
  return end.failed.empty() ? 0 : 1;
}

}  // namespace antisd
