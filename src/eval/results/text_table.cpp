#include "eval/results/text_table.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace antisd::inline eval {
namespace {

std::size_t width_of(const std::string& text) {  // code points
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// Control characters in a name must not reach the terminal.
std::string without_controls(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  return text;
}

}  // namespace

std::string TextTable::text() const {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& line : lines_) {
    widths.resize(std::max(widths.size(), line.size()), 0);
    for (std::size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], width_of(line[i]));
  }
  std::string text;
  for (const std::vector<std::string>& line : lines_) {
    std::string out;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string pad(widths[i] - width_of(line[i]), ' ');
      const std::string cell = without_controls(line[i]);
      out += i == 0 ? cell + pad : "  " + pad + cell;
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  }
  return text;
}

std::string percent_text(double share) {
  return std::isfinite(share) ? fmt::format("{:.1f}", 100 * share) : "-";
}

std::string interval_text(const Interval& interval) {
  if (!std::isfinite(interval.low) || !std::isfinite(interval.high)) return "-";
  return fmt::format("[{:.1f}, {:.1f}]", 100 * interval.low, 100 * interval.high);
}

}  // namespace antisd::inline eval
