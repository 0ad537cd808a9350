// The run directories below a folder.
#pragma once

#include <string>
#include <vector>

#include "report/folder.h"

namespace antisd::inline report {

struct FoundRun {
  std::string name;  // its path below the folder; the folder's own name where that is the run
  Folder folder;
};

// A run has metrics.jsonl, or config.toml and run.json. Runs are not looked for inside runs, nor
// deeper than a few folders; a run that two names lead to is found once.
bool is_run(const Folder& folder);
std::vector<FoundRun> find_runs(const Folder& folder);

// What tells the paths apart: each without the folders that all of them begin with.
std::vector<std::string> short_names(const std::vector<std::filesystem::path>& paths);

}  // namespace antisd::inline report
