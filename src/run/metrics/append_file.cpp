#include "run/metrics/append_file.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/system_error.h"

namespace antisd::inline run {

AppendFile::AppendFile(const std::filesystem::path& path)
    : path_(path), file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  if (!file_) throw_cannot_write(path, errno);
  struct stat status {};
  // The size is needed to cut off a partial record.
  if (::fstat(file_.get(), &status) != 0) throw_cannot_write(path, errno);
  size_ = status.st_size;
}

void AppendFile::append(std::string_view record) {
  if (is_torn_) cut();
  for (std::size_t done = 0; done < record.size();) {
    const ssize_t written = ::write(file_.get(), record.data() + done, record.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = written < 0 ? errno : ENOSPC;
      is_torn_ = done > 0;
      if (is_torn_ && ::ftruncate(file_.get(), size_) == 0) is_torn_ = false;
      throw_cannot_write(path_, error);
    }
    done += static_cast<std::size_t>(written);
  }
  size_ += static_cast<std::int64_t>(record.size());
}

// A record after a partial one could not be read.
void AppendFile::cut() {
  while (::ftruncate(file_.get(), size_) != 0) {
    if (errno != EINTR) throw_cannot_write(path_, errno);
  }
  is_torn_ = false;
}

bool AppendFile::is_there() const {
  struct stat named {
  }, open{};
  return ::stat(path_.c_str(), &named) == 0 && ::fstat(file_.get(), &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

}  // namespace antisd::inline run
