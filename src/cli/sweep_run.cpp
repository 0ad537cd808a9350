#include "cli/sweep_run.h"

#include <fstream>
#include <iostream>
#include <limits>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/report_file.h"
#include "core/error.h"
#include "io/installation.h"
#include "report/sweep/arms.h"
#include "report/sweep/outcome_words.h"

namespace antisd::inline cli {

namespace fs = std::filesystem;

constexpr const char* kBaseline = "grpo";

std::int64_t default_memory_limit() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:")) return std::atoll(line.c_str() + 13) * 1024 / 10 * 9;
  }
  return 0;
}

int sweep_and_report(SweepSettings settings, const SweepOutput& output, Console& console,
                     const std::function<bool()>& stop) {
  settings.program = own_program();
  const std::vector<PlannedRun> runs = plan_sweep(settings);
  std::int64_t done = 0, begun = 0;
  for (const PlannedRun& run : runs) {
    done += run.is_done ? 1 : 0;
    begun += run.has_begun && !run.is_done ? 1 : 0;
  }
  console.info(fmt::format("{} run{} in {}: {} finished before, {} to resume, {} at a time",
                           runs.size(), runs.size() == 1 ? "" : "s", settings.directory.string(),
                           done, begun, settings.limits.jobs));
  LiveTable table({.descriptor = 2, .quiet = output.quiet});
  const SweepEnd end = run_sweep(settings, runs, console, table, stop);
  if (end.stopped) {
    console.info("stopped; the same command continues from here");
    return kInterruptedStatus;
  }
  const std::vector<ArmOutcome> arms = read_arms(runs);
  if (arms.empty()) {
    throw RunError("no run finished a step",
                   {.where = settings.directory.string(),
                    .remedy = "fix the problems above; the same command continues"});
  }
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  std::cout << outcome_table(arms, kBaseline,
                             is_terminal ? table.columns() : std::numeric_limits<int>::max());
  if (output.in_words) std::cout << "\n" << outcome_words(arms, kBaseline);
  std::vector<Folder> folders;
  for (const PlannedRun& run : runs)
    folders.emplace_back(run.directory);
  const fs::path page =
      output.page.empty() ? settings.directory / "report.html" : fs::path(output.page);
  write_report(folders, output.title, page);
  std::cout << fmt::format("\nCurves, gate, lengths and samples: {}\n", page.string());
  return end.failed.empty() ? 0 : 1;
}

}  // namespace antisd::inline cli
