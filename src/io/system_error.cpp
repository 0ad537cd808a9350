#include "io/system_error.h"

#include <cerrno>
#include <system_error>

namespace antisd::inline io {

std::string system_problem(int error) {
  switch (error) {
    case ENOENT:
      return "there is no such file or folder";
    case EACCES:
    case EPERM:
      return "permission denied";
    case EISDIR:
      return "it is a folder, not a file";
    case ENOTDIR:
      return "a part of the path is a file, not a folder";
    case ENOSPC:
      return "no space is left on the disk";
    case EDQUOT:
      return "the disk quota is used up";
    case EFBIG:
      return "the file would be larger than this system or user may write";
    case EROFS:
      return "the file system is read-only";
    case 0:
      return "the system gives no reason";
    default:
      return std::generic_category().message(error);
  }
}

std::string system_remedy(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return "check the path";
    case EACCES:
    case EPERM:
      return "change its permissions or choose another path";
    case EISDIR:
      return "name a file in it";
    case ENOSPC:
    case EDQUOT:
      return "free some space or choose another folder";
    case EFBIG:
      return "raise the limit (ulimit -f) or choose another folder";
    case EROFS:
      return "choose another folder";
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files (ulimit -n)";
    case EAGAIN:
      return "raise the limit of processes (ulimit -u) or run fewer at a time";
    case ENOMEM:
      return "free some memory or run less at a time";
    default:
      return "";
  }
}

WriteError::WriteError(const std::filesystem::path& path, int error)
    : RunError("cannot be written: " + system_problem(error),
               {.where = path.string(), .remedy = system_remedy(error)}),
      error(error) {}

bool WriteError::is_full() const {
  return error == ENOSPC || error == EDQUOT;
}

bool WriteError::may_pass() const {
  switch (error) {
    case EFBIG:
    case EROFS:
    case EACCES:
    case EPERM:
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EEXIST:
    case ELOOP:
    case ENAMETOOLONG:
      return false;
    default:
      return true;
  }
}

void throw_cannot_read(const std::filesystem::path& path, int error) {
  throw InputError("cannot be read: " + system_problem(error),
                   {.where = path.string(), .remedy = system_remedy(error)});
}

void throw_cannot_write(const std::filesystem::path& path, int error) {
  throw WriteError(path, error);
}

void throw_failed(const std::string& what, int error) {
  throw RunError(what + ": " + system_problem(error), {.remedy = system_remedy(error)});
}

}  // namespace antisd::inline io
