#include "io/regular_file.h"

#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "core/error.h"
#include "io/system_error.h"

namespace antisd::inline io {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "something else";
}

[[noreturn]] void refuse(const std::filesystem::path& path, mode_t mode) {
  throw InputError(fmt::format("it is {}, where a file is needed", kind_of(mode)),
                   {.where = path.string(), .remedy = "save it to a file first"});
}

}  // namespace

UniqueFd open_regular_file(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file) {
    const int error = errno;  // a socket cannot be opened at all
    if (::stat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode))
      refuse(path, status.st_mode);
    throw_cannot_read(path, error);
  }
  if (::fstat(file.get(), &status) != 0) throw_cannot_read(path, errno);
  if (S_ISDIR(status.st_mode)) throw_cannot_read(path, EISDIR);
  if (!S_ISREG(status.st_mode)) refuse(path, status.st_mode);
  return file;
}

}  // namespace antisd::inline io
