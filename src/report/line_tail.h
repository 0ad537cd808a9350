// The lines of a growing file, each once: only what is new since the last look is read.
//
//   LineTail tail("metrics.jsonl");
//   tail.read(
//       run, 8 << 20, [&] { rows.clear(); },
//       [&](std::string_view line) { rows.emplace_back(line); });
//
// An incomplete last line waits for its newline. A file that was replaced, truncated or rewritten
// before the current offset is read again from the start.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "report/folder.h"

namespace antisd::inline report {

inline constexpr std::int64_t kMaxTailLineBytes = 1 << 20;  // longer lines are skipped

class LineTail {
 public:
  explicit LineTail(std::string name) : name_(std::move(name)) {}

  // Reads at most about `max_bytes`; true if there is more. `restart` is called before the first
  // line of a file that is read again.
  bool read(const Folder& folder, std::int64_t max_bytes, const std::function<void()>& restart,
            const std::function<void(std::string_view)>& take);

  const FileStamp& stamp() const { return stamp_; }  // size -1: never seen

 private:
  bool is_the_same(const OpenFile& file, const FileStamp& stamp) const;

  std::string name_;
  FileStamp stamp_;
  std::int64_t offset_ = 0;    // after the last newline taken
  std::string before_offset_;  // the last bytes before offset_
  bool in_long_line_ = false;
};

}  // namespace antisd::inline report
