#include "checkpoint/folders.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <random>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/system_error.h"

namespace antisd {
namespace {

namespace fs = std::filesystem;

// Empty where the folder cannot be read.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  std::ranges::sort(entries);
  return entries;
}

bool is_unfinished(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with(".step-") && name.ends_with(".tmp");
}

fs::path unfinished_name(const fs::path& target) {
  return target.parent_path() /
         fmt::format(".{}.{:08x}.tmp", target.filename().string(), std::random_device{}());
}

void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw_cannot_write(folder, errno);
  ::fsync(descriptor);  // some file systems cannot sync a folder; the rename stands anyway
  ::close(descriptor);
}

}  // namespace

std::vector<StepFolder> step_folders(const fs::path& checkpoints) {
  std::vector<StepFolder> folders;
  for (const fs::path& path : entries_of(checkpoints)) {
    if (const auto step = step_of_name(path.filename().string())) folders.push_back({path, *step});
  }
  std::ranges::sort(folders, std::ranges::greater(), &StepFolder::step);
  return folders;
}

std::vector<fs::path> unfinished_folders(const fs::path& checkpoints) {
  std::vector<fs::path> folders = entries_of(checkpoints);
  std::erase_if(folders, [](const fs::path& path) { return !is_unfinished(path); });
  return folders;
}

std::vector<fs::path> remove_unfinished(const fs::path& checkpoints) {
  std::vector<fs::path> folders = unfinished_folders(checkpoints);
  std::erase_if(folders, [](const fs::path& path) {
    std::error_code error;
    fs::remove_all(path, error);
    return static_cast<bool>(error);
  });
  return folders;
}

bool remove_folder(const fs::path& path) {
  const fs::path aside = unfinished_name(path);
  std::error_code error;
  fs::rename(path, aside, error);
  if (error) return false;
  fs::remove_all(aside, error);
  return !error;
}

UnfinishedFolder::UnfinishedFolder(fs::path target)
    : path_(unfinished_name(target)), target_(std::move(target)) {
  if (::mkdir(path_.c_str(), 0777) != 0) throw_cannot_write(path_, errno);
}

UnfinishedFolder::~UnfinishedFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void UnfinishedFolder::rename_to_target() {
  // The files are synced by their writers; the folders' own lists of names are not yet.
  for (const fs::path& entry : entries_of(path_)) {
    std::error_code ignored;
    if (fs::is_directory(entry, ignored)) sync_folder(entry);
  }
  sync_folder(path_);
  const char* const from = path_.c_str();
  const char* const to = target_.c_str();
  int status = ::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
  if (status != 0 && errno == EEXIST) {
    status = ::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE);
  }
  if (status != 0 && (errno == EINVAL || errno == ENOSYS)) {
    // A file system without these two: the older one steps aside for a moment.
    remove_folder(target_);
    status = ::rename(from, to);
  }
  if (status != 0) throw_cannot_write(target_, errno);
  sync_folder(target_.parent_path());
}

}  // namespace antisd
