// metrics.jsonl while somebody writes it: each call gives the rows that are new.
//
//   MetricsTail tail(run / "metrics.jsonl");
//   for (const Json& row : tail.read()) ...
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "io/json.h"

namespace antisd {

class MetricsTail {
 public:
  explicit MetricsTail(std::filesystem::path path) : path_(std::move(path)) {}

  // A last line without its end waits for the next call; a line that is no object is left out. A
  // missing file has no rows. After a resume cut rows off, all rows come again: see restarts().
  std::vector<Json> read();
  int restarts() const { return restarts_; }

 private:
  std::filesystem::path path_;
  std::int64_t offset_ = 0;  // behind the last whole line
  std::uint64_t inode_ = 0;  // a cut file is another file
  int restarts_ = 0;
};

}  // namespace antisd
