// A file that grows by complete records: a failed append leaves nothing behind, so that the next
// one can follow once there is space again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "io/unique_fd.h"

namespace antisd::inline run {

class AppendFile {
 public:
  // Opens or creates the file. RunError if that fails.
  explicit AppendFile(const std::filesystem::path& path);

  // When this returns, the system has the record: a kill of the program does not lose it. RunError.
  void append(std::string_view record);

  // Whether the path still names this file: appends to a removed file are lost without an error.
  bool is_there() const;

  const std::filesystem::path& path() const { return path_; }

 private:
  void cut();

  std::filesystem::path path_;
  UniqueFd file_;
  std::int64_t size_ = 0;  // of the complete records
  bool is_torn_ = false;   // a partial record follows them
};

}  // namespace antisd::inline run
