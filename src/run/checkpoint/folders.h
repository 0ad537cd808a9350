// Names below a folder of checkpoints: "step-000010" is complete, ".step-000010.3f2a.tmp" is being
// written or was left behind.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "run/run_files.h"

namespace antisd::inline run {

struct StepFolder {
  std::filesystem::path path;
  std::int64_t step;
};

// Newest step first; empty if the folder is missing or unreadable.
std::vector<StepFolder> step_folders(const std::filesystem::path& checkpoints);

std::vector<std::filesystem::path> unfinished_folders(const std::filesystem::path& checkpoints);
// Returns the removed ones.
std::vector<std::filesystem::path> remove_unfinished(const std::filesystem::path& checkpoints);

// Renames the folder first, so that a kill in between leaves no partial checkpoint under a complete
// one's name. False if that fails.
bool remove_folder(const std::filesystem::path& path);

// A folder beside its target; removed unless it is renamed to the target.
class UnfinishedFolder {
 public:
  // RunError.
  explicit UnfinishedFolder(std::filesystem::path target);
  ~UnfinishedFolder();
  UnfinishedFolder(const UnfinishedFolder&) = delete;
  UnfinishedFolder& operator=(const UnfinishedFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Durable when it returns. An existing target is exchanged with it atomically and then removed.
  // RunError.
  void rename_to_target();

 private:
  std::filesystem::path path_, target_;
};

}  // namespace antisd::inline run
