#include "run/checkpoint/folders.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <random>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/system_error.h"
#include "io/unique_fd.h"

namespace antisd::inline run {
namespace {

namespace fs = std::filesystem;

// Empty if the folder cannot be read.
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

// Syncs the folder's entries; 0 or the error.
int sync_folder(const fs::path& folder) {
  const UniqueFd descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor) return errno;
  while (::fsync(descriptor.get()) != 0) {
    if (errno == EINTR) continue;
    return errno == EINVAL || errno == ENOTSUP ? 0 : errno;  // not supported everywhere
  }
  return 0;
}

void sync_or_throw(const fs::path& folder) {
  if (const int error = sync_folder(folder); error != 0) throw_cannot_write(folder, error);
}

// For file systems that support neither exchange nor no-replace renames: the older folder is moved
// aside, and back if the new one cannot be moved into its place.
int replace_folder(const fs::path& from, const fs::path& to) {
  const fs::path aside = unfinished_name(to);
  const bool older = ::rename(to.c_str(), aside.c_str()) == 0;
  if (!older && errno != ENOENT) return errno;
  if (::rename(from.c_str(), to.c_str()) != 0) {
    const int error = errno;
    if (older && ::rename(aside.c_str(), to.c_str()) != 0) {
      // It keeps the name of an unfinished one.
    }
    return error;
  }
  std::error_code ignored;
  if (older) fs::remove_all(aside, ignored);
  return 0;
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
  // The writers sync the files; this syncs the folders' entries.
  for (const fs::path& entry : entries_of(path_)) {
    std::error_code ignored;
    if (fs::is_directory(entry, ignored)) sync_or_throw(entry);
  }
  sync_or_throw(path_);
  const char* const from = path_.c_str();
  const char* const to = target_.c_str();
  int status = ::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
  if (status != 0 && errno == EEXIST) {
    status = ::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE);
  }
  int error = status != 0 ? errno : 0;
  if (error == EINVAL || error == ENOSYS) error = replace_folder(path_, target_);
  if (error != 0) throw_cannot_write(target_, error);
  sync_folder(target_.parent_path());  // the rename is done, synced or not
}

}  // namespace antisd::inline run
