// A file that grows by whole records: a record that the disk refuses leaves nothing behind, so that
// the next one can follow once there is space again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "io/unique_fd.h"

namespace antisd::inline run {

class AppendFile {
 public:
  // Opens or makes the file. RunError where that fails.
  explicit AppendFile(const std::filesystem::path& path);

  // In the system's hands when this returns: a kill of the program loses none of it. RunError.
  void append(std::string_view record);

  // Whether the path still names this file: what is appended to one that was removed is lost
  // without a word from the system.
  bool is_there() const;

  const std::filesystem::path& path() const { return path_; }

 private:
  void cut();

  std::filesystem::path path_;
  UniqueFd file_;
  std::int64_t size_ = 0;  // of the whole records
  bool is_torn_ = false;   // a part of a record stands behind them
};

}  // namespace antisd::inline run
