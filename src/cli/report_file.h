// The report page of some runs as a file: what `report` writes, and `sweep` and `demo` at their
// end.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "eval/results/comparison.h"
#include "report/folder.h"
#include "report/run_set.h"

namespace antisd::inline cli {

// The runs' evaluations compared, and the table of them above a page's own.
Comparison compare(const RunSet& runs);
Json comparison_table(const RunSet& runs);

struct WrittenReport {
  Comparison comparison;  // of the runs' evaluations
  std::size_t bytes = 0;
};

// RunError where the disk refuses; the file appears whole or not at all.
WrittenReport write_report(const std::vector<Folder>& runs, const std::string& title,
                           const std::filesystem::path& file);

}  // namespace antisd::inline cli
