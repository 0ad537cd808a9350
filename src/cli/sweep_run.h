// What `sweep` and `demo` share: the runs, the table of what came out, the page.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "report/sweep/sweep.h"
#include "run/metrics/console.h"

namespace antisd::inline cli {

// The path of this program, for the processes it starts.
std::filesystem::path own_program();

std::int64_t default_memory_limit();  // bytes: nine tenths of what is free now

struct SweepOutput {
  std::string page = {};  // where the report goes; empty: report.html beside the runs
  std::string title = "Sweep";
  bool in_words = false;  // sentences after the table
  bool quiet = false;
};

// Returns the exit status: 0, 1 where a run failed, 130 after a stop. What came out goes to
// standard output.
int sweep_and_report(SweepSettings settings, const SweepOutput& output, Console& console,
                     const std::function<bool()>& stop);

}  // namespace antisd::inline cli
