#include "run/run_lock.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/error.h"
#include "io/system_error.h"
#include "run/run_files.h"

namespace antisd::inline run {

RunLock::RunLock(const std::filesystem::path& run) {
  std::error_code error;
  std::filesystem::create_directories(run, error);
  if (error) throw_cannot_write(run, error.value());
  const std::filesystem::path file = run / kLockFile;
  descriptor_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw_cannot_write(file, errno);
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  const int refused = errno;
  close(descriptor_);
  if (refused != EWOULDBLOCK) throw_cannot_write(file, refused);
  throw InputError(
      "another process is training in this run directory",
      {.where = run.string(), .remedy = "wait for it, stop it, or choose another record.dir"});
}

RunLock::~RunLock() {
  close(descriptor_);
}

}  // namespace antisd::inline run
