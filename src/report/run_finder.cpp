#include "report/run_finder.h"

#include <algorithm>
#include <set>

#include "run/run_files.h"

namespace antisd::inline report {
namespace {

constexpr int kMaxDepth = 6;
constexpr std::size_t kMaxRuns = 500;
constexpr std::size_t kMaxEntries = 20'000;  // per folder
constexpr std::size_t kMaxFolders = 20'000;  // searched

class Search {
 public:
  std::vector<FoundRun> runs;

  void look_into(const Folder& folder, const std::string& name, int depth) {
    if (runs.size() >= kMaxRuns || seen_.size() >= kMaxFolders) return;
    std::error_code error;
    const auto canonical = std::filesystem::canonical(folder.path(), error);
    if (error || !seen_.insert(canonical.string()).second) return;  // links can form cycles
    if (is_run(folder)) {
      runs.push_back({name, folder});
      return;
    }
    if (depth >= kMaxDepth) return;
    for (const Folder::Entry& entry : folder.list("", kMaxEntries)) {
      if (!entry.is_folder || entry.name.starts_with('.')) continue;
      look_into(folder.below(entry.name), name.empty() ? entry.name : name + "/" + entry.name,
                depth + 1);
    }
  }

 private:
  std::set<std::string> seen_;
};

}  // namespace

bool is_run(const Folder& folder) {
  return folder.open(kMetricsFile) || (folder.open(kConfigFile) && folder.open(kRunFile));
}

std::vector<FoundRun> find_runs(const Folder& folder) {
  Search search;
  search.look_into(folder, "", 0);
  for (FoundRun& run : search.runs) {
    if (run.name.empty()) run.name = short_names({folder.path()})[0];
  }
  return std::move(search.runs);
}

std::vector<std::string> short_names(const std::vector<std::filesystem::path>& paths) {
  std::vector<std::vector<std::string>> parts;
  for (const std::filesystem::path& path : paths) {
    std::error_code error;
    auto absolute = std::filesystem::absolute(path, error).lexically_normal();
    if (!absolute.has_filename()) absolute = absolute.parent_path();
    parts.emplace_back();
    for (const auto& part : absolute)
      parts.back().push_back(part.string());
  }
  std::size_t common = 0;
  const auto is_common = [&](const std::vector<std::string>& one) {
    return common + 1 < one.size() && one[common] == parts[0][common];
  };
  while (std::all_of(parts.begin(), parts.end(), is_common))
    ++common;
  std::vector<std::string> names;
  for (const auto& one : parts) {
    std::string name;
    for (std::size_t i = common; i < one.size(); ++i)
      name += (name.empty() || name == "/" ? "" : "/") + one[i];
    names.push_back(name);
  }
  return names;
}

}  // namespace antisd::inline report
