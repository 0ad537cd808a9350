#include "report/sweep/live_table.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace antisd::inline report {
namespace {

winsize size_of(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0) size = {};
  if (size.ws_col == 0) size.ws_col = 80;
  if (size.ws_row == 0) size.ws_row = 24;
  return size;
}

// At most `columns` characters; each of ours takes one column.
std::string cut(const std::string& line, int columns) {
  std::string out;
  int width = 0;
  for (const char c : line) {
    const bool begins = (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    if (begins && ++width > columns) break;
    out += c;
  }
  return out;
}

}  // namespace

LiveTable::LiveTable(LiveTableOptions options) : options_(options) {
  const char* const kind = std::getenv("TERM");
  is_live_ = !options.quiet && ::isatty(options.descriptor) == 1 && kind != nullptr &&
             std::string_view(kind) != "dumb";
}

int LiveTable::columns() const {
  return size_of(options_.descriptor).ws_col;
}

int LiveTable::rows() const {
  return size_of(options_.descriptor).ws_row;
}

void LiveTable::draw(const std::vector<std::string>& lines) {
  if (!is_live_) return;
  const int width = columns() - 1, height = std::max(2, rows() - 1);
  const int all = static_cast<int>(lines.size());
  const int shown = std::min(all, height), head = all > height ? height - 1 : shown;
  std::string text = drawn_ > 0 ? fmt::format("\x1b[{}A", drawn_) : "";
  for (int i = 0; i < head; ++i)
    text += "\r\x1b[K" + cut(lines[static_cast<std::size_t>(i)], width) + "\n";
  if (all > height) text += "\r\x1b[K" + cut(lines.back(), width) + "\n";
  const int now = all > height ? height : shown;
  for (int i = now; i < drawn_; ++i)
    text += "\r\x1b[K\n";
  if (drawn_ > now) text += fmt::format("\x1b[{}A", drawn_ - now);
  drawn_ = now;
  (void)!::write(options_.descriptor, text.data(), text.size());
}

void LiveTable::clear() {
  if (drawn_ == 0) return;
  std::string text = fmt::format("\x1b[{}A", drawn_);
  text += "\r\x1b[J";
  drawn_ = 0;
  (void)!::write(options_.descriptor, text.data(), text.size());
}

}  // namespace antisd::inline report
