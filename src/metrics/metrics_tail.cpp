#include "metrics/metrics_tail.h"

#include <fstream>

#include <sys/stat.h>

#include "core/error.h"

namespace antisd {

std::vector<Json> MetricsTail::read() {
  std::vector<Json> rows;
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) return rows;
  const bool is_another = offset_ > 0 && (status.st_ino != inode_ || status.st_size < offset_);
  if (is_another) {
    offset_ = 0;
    ++restarts_;
  }
  inode_ = status.st_ino;
  if (status.st_size == offset_) return rows;
  std::ifstream file(path_, std::ios::binary);
  file.seekg(offset_);
  for (std::string line; std::getline(file, line) && !file.eof();) {
    offset_ += static_cast<std::int64_t>(line.size()) + 1;
    try {
      Json row = parse_json(line, path_.string());
      if (row.is_object()) rows.push_back(std::move(row));
    } catch (const InputError&) {
      // Torn by a kill; a resume removes it.
    }
  }
  return rows;
}

}  // namespace antisd
