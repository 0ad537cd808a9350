// The report page of runs as a file: written by `report`, and by `sweep` and `demo` when they end.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "eval/results/comparison.h"
#include "report/folder.h"
#include "report/run_set.h"

namespace antisd::inline cli {

// Compares the runs' evaluations; their table comes before the page's own.
Comparison compare(const RunSet& runs);
Json comparison_table(const RunSet& runs);

struct WrittenReport {
  Comparison comparison;  // of the runs' evaluations
  std::size_t bytes = 0;
};

// RunError if writing fails; the file appears complete or not at all.
WrittenReport write_report(const std::vector<Folder>& runs, const std::string& title,
                           const std::filesystem::path& file);

}  // namespace antisd::inline cli
