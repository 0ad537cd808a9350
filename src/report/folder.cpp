#include "report/folder.h"

#include <algorithm>
#include <array>
#include <climits>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace antisd::inline report {
namespace {

bool is_below(const std::filesystem::path& boundary, int descriptor) {
  std::array<char, PATH_MAX> target;
  const std::string link = fmt::format("/proc/self/fd/{}", descriptor);
  const ssize_t length = readlink(link.c_str(), target.data(), target.size());
  if (length <= 0 || length == static_cast<ssize_t>(target.size())) return false;
  const std::string_view path(target.data(), static_cast<std::size_t>(length));
  const std::string& root = boundary.native();
  if (!path.starts_with(root)) return false;
  return path.size() == root.size() || root.ends_with('/') || path[root.size()] == '/';
}

}  // namespace

OpenFile::~OpenFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

FileStamp OpenFile::stamp() const {
  struct stat status = {};
  if (fstat(descriptor_, &status) != 0) return {};
  return {status.st_dev, status.st_ino, status.st_size,
          status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec};
}

std::string OpenFile::read(std::int64_t offset, std::int64_t bytes) const {
  std::string text(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0)), '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = pread(descriptor_, text.data() + filled, text.size() - filled,
                              offset + static_cast<std::int64_t>(filled));
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
  }
  text.resize(filled);
  return text;
}

Folder::Folder(std::filesystem::path path, FolderOptions options)
    : path_(std::move(path)), options_(std::move(options)) {}

std::optional<OpenFile> Folder::open_as(const std::string& name, bool folder) const {
  const std::filesystem::path path = name.empty() ? path_ : path_ / name;
  // O_NONBLOCK: a pipe in the folder must not block the reader.
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (folder ? O_DIRECTORY : 0);
  const int descriptor = ::open(path.c_str(), flags);
  if (descriptor < 0) return std::nullopt;
  OpenFile file(descriptor);
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) return std::nullopt;
  if (folder ? !S_ISDIR(status.st_mode) : !S_ISREG(status.st_mode)) return std::nullopt;
  if (!options_.boundary.empty() && !is_below(options_.boundary, descriptor)) return std::nullopt;
  return file;
}

std::optional<OpenFile> Folder::open(const std::string& name) const {
  return open_as(name, false);
}

std::optional<std::string> Folder::read(const std::string& name, std::int64_t max_bytes) const {
  const std::optional<OpenFile> file = open(name);
  if (!file) return std::nullopt;
  const std::int64_t size = file->stamp().size;
  if (size > max_bytes) return std::nullopt;
  return file->read(0, size);
}

std::optional<FileStamp> Folder::stamp(const std::string& name) const {
  const std::optional<OpenFile> file = open(name);
  if (!file) return std::nullopt;
  return file->stamp();
}

std::vector<Folder::Entry> Folder::list(const std::string& name, std::size_t limit) const {
  std::vector<Entry> entries;
  const std::optional<OpenFile> folder = open_as(name, true);
  if (!folder) return entries;
  DIR* listing = fdopendir(dup(folder->descriptor()));
  if (listing == nullptr) return entries;
  while (const dirent* entry = readdir(listing)) {
    const std::string child = entry->d_name;
    if (child == "." || child == "..") continue;
    if (entries.size() >= limit) break;
    bool is_folder = entry->d_type == DT_DIR;
    if (entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN) {
      struct stat status = {};
      is_folder =
          fstatat(folder->descriptor(), child.c_str(), &status, 0) == 0 && S_ISDIR(status.st_mode);
    }
    entries.push_back({child, is_folder});
  }
  closedir(listing);
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

}  // namespace antisd::inline report
