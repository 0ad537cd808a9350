#include "report/line_tail.h"

#include <algorithm>

namespace antisd::inline report {
namespace {

constexpr std::size_t kMark = 64;  // bytes; enough to tell rows of metrics apart

}  // namespace

bool LineTail::is_the_same(const OpenFile& file, const FileStamp& stamp) const {
  if (stamp_.size < 0) return true;
  if (!stamp.same_file(stamp_) || stamp.size < offset_) return false;
  const auto mark = static_cast<std::int64_t>(before_offset_.size());
  return file.read(offset_ - mark, mark) == before_offset_;
}

bool LineTail::read(const Folder& folder, std::int64_t max_bytes,
                    const std::function<void()>& restart,
                    const std::function<void(std::string_view)>& take) {
  const std::optional<OpenFile> file = folder.open(name_);
  if (!file) return false;  // keep what was read; a resumed run replaces the file shortly
  const FileStamp stamp = file->stamp();
  if (stamp == stamp_ && offset_ == stamp.size) return false;
  if (!is_the_same(*file, stamp)) {
    offset_ = 0;
    before_offset_.clear();
    in_long_line_ = false;
    restart();
  }
  stamp_ = stamp;
  const std::int64_t wanted =
      std::min(stamp.size - offset_, std::max(max_bytes, kMaxTailLineBytes));
  const std::string text = file->read(offset_, wanted);
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    if (in_long_line_ || end - begin > kMaxTailLineBytes) {
      in_long_line_ = false;
      continue;
    }
    take(std::string_view(text).substr(begin, end - begin));
  }
  if (static_cast<std::int64_t>(text.size() - begin) >= kMaxTailLineBytes) {
    in_long_line_ = true;
    begin = text.size();
  }
  const std::size_t mark = std::min(begin, kMark);
  before_offset_ = (before_offset_ + text.substr(begin - mark, mark));
  if (before_offset_.size() > kMark) before_offset_.erase(0, before_offset_.size() - kMark);
  offset_ += static_cast<std::int64_t>(begin);
  return begin > 0 && offset_ < stamp.size;
}

}  // namespace antisd::inline report
