// The names below a folder of checkpoints: "step-000010" is whole, ".step-000010.3f2a.tmp" is being
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

// Newest step first. A folder that is missing or cannot be read has none.
std::vector<StepFolder> step_folders(const std::filesystem::path& checkpoints);

std::vector<std::filesystem::path> unfinished_folders(const std::filesystem::path& checkpoints);
// Returns those that went.
std::vector<std::filesystem::path> remove_unfinished(const std::filesystem::path& checkpoints);

// The name goes first, by a rename, so that a kill in between leaves no half checkpoint behind
// under the name of a whole one. False where that fails.
bool remove_folder(const std::filesystem::path& path);

// A folder beside its target that is removed again unless it was renamed to it.
class UnfinishedFolder {
 public:
  // RunError.
  explicit UnfinishedFolder(std::filesystem::path target);
  ~UnfinishedFolder();
  UnfinishedFolder(const UnfinishedFolder&) = delete;
  UnfinishedFolder& operator=(const UnfinishedFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Durable when it returns. What stood under the target's name changes places with it in one step,
  // and is removed then. RunError.
  void rename_to_target();

 private:
  std::filesystem::path path_, target_;
};

}  // namespace antisd::inline run
