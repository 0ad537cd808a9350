// System errors (errno) in words, with what a user can do about them.
#pragma once

#include <filesystem>
#include <string>

#include "core/error.h"

namespace antisd::inline io {

std::string system_problem(int error);  // "no space is left on the disk"
std::string system_remedy(int error);   // "free some space or choose another folder"; may be empty

// A write that the system refused, with its reason.
class WriteError : public RunError {
 public:
  WriteError(const std::filesystem::path& path, int error);
  const int error;  // errno

  // No space or quota is left: removing files helps.
  bool is_full() const;
  // Whether the same call may succeed a little later without a change of path or limits.
  bool may_pass() const;
};

// InputError for a file to be read, WriteError for one to be written.
[[noreturn]] void throw_cannot_read(const std::filesystem::path& path, int error);
[[noreturn]] void throw_cannot_write(const std::filesystem::path& path, int error);
// RunError for anything else: "what: the system's reason".
[[noreturn]] void throw_failed(const std::string& what, int error);

}  // namespace antisd::inline io
