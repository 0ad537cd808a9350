#include "io/atomic_file.h"

#include <algorithm>
#include <cerrno>
#include <random>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/check.h"
#include "core/error.h"
#include "io/regular_file.h"
#include "io/system_error.h"
#include "io/unique_fd.h"

namespace antisd::inline io {
namespace {

constexpr std::size_t kMaxWriteBytes = std::size_t{1} << 30;  // the kernel takes at most 2 GiB

// The target of a rename that keeps a symbolic link at `path`.
std::filesystem::path resolve_links(std::filesystem::path path) {
  for (int hops = 0; hops < 40; ++hops) {
    std::error_code error;
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) return path;
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  throw_cannot_write(path, ELOOP);
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

// mkstemp would make the file readable only by its owner; it should follow the umask.
int open_temporary(const std::filesystem::path& target, std::filesystem::path& temporary) {
  std::random_device random;
  for (int attempt = 0;; ++attempt) {
    // A name of 255 bytes is legal, so the temporary one contains only a part of it.
    temporary = folder_of(target) /
                fmt::format(".{}.{:08x}.tmp", target.filename().string().substr(0, 200), random());
    const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0 || (errno != EEXIST && errno != EINTR) || attempt == 100) return descriptor;
  }
}

void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;  // a folder may be writable but not readable
  ::fsync(descriptor);         // some file systems cannot sync a folder; the rename is done anyway
  ::close(descriptor);
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(path) {
  if (!path.has_filename()) throw_cannot_write(path, path.empty() ? ENOENT : EISDIR);
  const std::filesystem::path target = resolve_links(path);
  struct stat status {};
  const bool exists = ::stat(target.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) throw_cannot_write(path, EISDIR);
  if (exists && !S_ISREG(status.st_mode)) {
    descriptor_ = ::open(target.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) throw_cannot_write(path, errno);
    return;
  }
  descriptor_ = open_temporary(target, temporary_);
  if (descriptor_ < 0) {
    const int error = errno;
    temporary_.clear();
    if (error == ENOENT) {
      throw RunError(
          "cannot be written: its folder does not exist",
          {.where = path.string(),
           .remedy = fmt::format("create it first: mkdir -p {}", folder_of(target).string())});
    }
    throw_cannot_write(path, error);
  }
  target_ = target;
  // A file that is replaced keeps its permissions.
  if (exists) ::fchmod(descriptor_, status.st_mode & 07777);
}

AtomicFile::~AtomicFile() {
  abandon();
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept {
  *this = std::move(other);
}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this == &other) return *this;
  abandon();
  path_ = std::exchange(other.path_, {});
  target_ = std::exchange(other.target_, {});
  temporary_ = std::exchange(other.temporary_, {});
  descriptor_ = std::exchange(other.descriptor_, -1);
  return *this;
}

void AtomicFile::abandon() noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  ANTISD_CHECK(descriptor_ >= 0);
  while (!bytes.empty()) {
    const ssize_t written =
        ::write(descriptor_, bytes.data(), std::min(bytes.size(), kMaxWriteBytes));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw_cannot_write(path_, written < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text)));
}

void AtomicFile::commit() {
  ANTISD_CHECK(descriptor_ >= 0);
  if (temporary_.empty()) {
    const int closed = ::close(std::exchange(descriptor_, -1));
    if (closed != 0 && errno != EINTR) throw_cannot_write(path_, errno);
    return;
  }
  // Some file systems report a full disk only here.
  while (::fsync(descriptor_) != 0) {
    if (errno != EINTR) throw_cannot_write(path_, errno);
  }
  const int closed = ::close(std::exchange(descriptor_, -1));
  if (closed != 0 && errno != EINTR) throw_cannot_write(path_, errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) throw_cannot_write(path_, errno);
  temporary_.clear();
  sync_folder(folder_of(target_));
}

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

std::string read_file(const std::filesystem::path& path, std::int64_t max_bytes) {
  const UniqueFd file = open_regular_file(path);
  std::string text;
  struct stat status {};
  if (::fstat(file.get(), &status) == 0 && status.st_size <= max_bytes) {
    text.reserve(static_cast<std::size_t>(status.st_size));
  }
  std::vector<char> chunk(1 << 16);
  while (true) {
    const ssize_t count = ::read(file.get(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_cannot_read(path, errno);
    if (count == 0) return text;
    if (static_cast<std::int64_t>(text.size()) + count > max_bytes) {
      throw InputError(fmt::format("longer than the {} bytes that such a file may have", max_bytes),
                       {.where = path.string(), .remedy = "check that it is the right file"});
    }
    text.append(chunk.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace antisd::inline io
