// Shared by `sweep` and `demo`: the runs, the table of results, the page.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "report/sweep/sweep.h"
#include "run/metrics/console.h"

namespace antisd::inline cli {

std::int64_t default_memory_limit();  // bytes: nine tenths of the memory that is free now

struct SweepOutput {
  std::string page = {};  // where the report goes; empty: report.html beside the runs
  std::string title = "Sweep";
  bool in_words = false;  // adds sentences after the table
  bool quiet = false;
};

// Returns the exit status: 0, 1 if a run failed, 130 after a stop. Results go to standard output.
int sweep_and_report(SweepSettings settings, const SweepOutput& output, Console& console,
                     const std::function<bool()>& stop);

}  // namespace antisd::inline cli
