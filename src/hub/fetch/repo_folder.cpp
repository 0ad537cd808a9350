#include "hub/fetch/repo_folder.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "hub/fetch/http_client.h"
#include "io/atomic_file.h"
#include "io/system_error.h"

namespace antisd::inline hub {
namespace {

namespace fs = std::filesystem;

constexpr auto kLockPause = std::chrono::milliseconds(200);

// The first line is the one that the standard for cache folders asks for; backups skip such
// folders.
constexpr const char* kCacheTag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder holds models and data sets that can be downloaded again.\n";

void make_folders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw_cannot_write(folder, error.value());
}

}  // namespace

bool is_blob_name(const std::string& etag) {
  constexpr std::size_t kMaxName = 128;
  return !etag.empty() && etag.size() <= kMaxName && etag.front() != '.' &&
         std::all_of(etag.begin(), etag.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '-' || c == '_' || c == '.';
         });
}

RepoFolder::RepoFolder(const fs::path& cache, const RepoName& repo)
    : folder_(cache / cache_name(repo)), locks_(cache / ".locks" / cache_name(repo)) {
  make_folders(folder_ / "blobs");
  make_folders(locks_);
  std::error_code ignored;
  const fs::path tag = cache / "CACHEDIR.TAG";
  if (!fs::exists(tag, ignored)) write_file_atomically(tag, kCacheTag);
}

fs::path RepoFolder::blob(const std::string& etag) const {
  return folder_ / "blobs" / etag;
}

fs::path RepoFolder::incomplete(const std::string& etag) const {
  return folder_ / "blobs" / (etag + ".incomplete");
}

fs::path RepoFolder::snapshot(const std::string& commit) const {
  return folder_ / "snapshots" / commit;
}

bool RepoFolder::has_file(const std::string& commit, const std::string& path) const {
  std::error_code ignored;
  return fs::is_regular_file(snapshot(commit) / path, ignored);
}

BlobLock RepoFolder::lock(const std::string& etag, const std::function<bool()>& stop,
                          const std::function<void()>& waiting) const {
  const fs::path path = locks_ / (etag + ".lock");
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0664));
  if (!file) throw_cannot_write(path, errno);
  for (bool said = false; ::flock(file.get(), LOCK_EX | LOCK_NB) != 0;) {
    if (errno != EWOULDBLOCK && errno != EINTR) throw_cannot_write(path, errno);
    if (!said) waiting();
    said = true;
    if (stop()) throw FetchStopped();
    std::this_thread::sleep_for(kLockPause);
  }
  return BlobLock(std::move(file));
}

void RepoFolder::link(const std::string& commit, const std::string& path,
                      const std::string& etag) const {
  const fs::path link = snapshot(commit) / path;
  make_folders(link.parent_path());
  const fs::path target = blob(etag).lexically_relative(link.parent_path());
  // Beside the blobs: a snapshot holds nothing but its files.
  const fs::path temporary = folder_ / "blobs" / fmt::format("{}.{}.link", etag, ::getpid());
  std::error_code ignored, error;
  fs::remove(temporary, ignored);
  fs::create_symlink(target, temporary, error);
  if (error) throw_cannot_write(temporary, error.value());
  fs::rename(temporary, link, error);
  if (!error) return;
  fs::remove(temporary, ignored);
  throw_cannot_write(link, error.value());
}

void RepoFolder::set_ref(const std::string& name, const std::string& commit) const {
  const fs::path ref = folder_ / "refs" / name;
  make_folders(ref.parent_path());
  write_file_atomically(ref, commit);
}

}  // namespace antisd::inline hub
