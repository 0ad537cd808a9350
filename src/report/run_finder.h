// The run directories below a folder.
#pragma once

#include <string>
#include <vector>

#include "report/folder.h"

namespace antisd::inline report {

struct FoundRun {
  std::string name;  // its path below the folder; the folder's own name if that is the run
  Folder folder;
};

// A run has metrics.jsonl, or config.toml and run.json. Runs inside runs and below a few levels are
// not searched for; a run with two names is found once.
bool is_run(const Folder& folder);
std::vector<FoundRun> find_runs(const Folder& folder);

// The distinguishing part of each path: without the leading folders that all have in common.
std::vector<std::string> short_names(const std::vector<std::filesystem::path>& paths);

}  // namespace antisd::inline report
