#include "run/metrics/progress_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace antisd::inline run {
namespace {

constexpr int kWidestBar = 32, kNarrowestBar = 6;

bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

int width_of(const std::string& text) {
  return static_cast<int>(std::ranges::count_if(text, [](char c) { return !is_continuation(c); }));
}

std::string cut_to(const std::string& text, int columns) {
  std::size_t end = 0;
  for (int width = 0; end < text.size(); ++end) {
    if (!is_continuation(text[end]) && ++width > columns) break;
  }
  return text.substr(0, end);
}

std::string rate_text(const ProgressState& state) {
  if (state.per_second >= 1) return fmt::format("{:.1f} {}/s", state.per_second, state.unit);
  return fmt::format("{:.1f} s/{}", 1 / state.per_second, state.unit);
}

// The text after the count, the most important first.
std::vector<std::string> details_of(const ProgressState& state) {
  std::vector<std::string> details;
  if (state.total > 0) {
    const double share = static_cast<double>(state.done) / static_cast<double>(state.total);
    details.push_back(fmt::format("{:.0f}%", std::floor(100 * share)));
  }
  if (state.per_second > 0) {
    details.push_back(rate_text(state));
    if (state.total > state.done) {
      const auto left = static_cast<double>(state.total - state.done);
      details.push_back("ETA " + duration_text(left / state.per_second));
    }
  }
  for (const Metric& metric : state.values) {
    details.push_back(std::isnan(metric.value)
                          ? metric.name + " -"
                          : fmt::format("{} {:.4g}", metric.name, metric.value));
  }
  return details;
}

std::string count_text(const ProgressState& state) {
  if (state.total > 0) return fmt::format("{} {}/{}", state.label, state.done, state.total);
  return fmt::format("{} {}", state.label, state.done);
}

std::string bar_of(const ProgressState& state, int width) {
  const double share = static_cast<double>(state.done) / static_cast<double>(state.total);
  const auto full = static_cast<int>(std::clamp(share, 0.0, 1.0) * width);
  return fmt::format(" [{:#<{}}{:.<{}}]", "", full, "", width - full);
}

}  // namespace

std::string duration_text(double seconds) {
  if (!(seconds < 1e9)) return "long";
  const auto whole = static_cast<std::int64_t>(std::max(seconds, 0.0) + 0.5);
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  if (whole < 86'400) return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
  return fmt::format("{}d{:02}h", whole / 86'400, whole / 3600 % 24);
}

std::string progress_bar_text(const ProgressState& state, int columns) {
  const std::string count = count_text(state);
  std::string rest;
  int left = columns - width_of(count);
  for (const std::string& detail : details_of(state)) {
    const int width = 2 + width_of(detail);
    if (width > left) break;
    rest += "  " + detail;
    left -= width;
  }
  constexpr int kBrackets = 3;  // and the preceding space
  const int bar = std::min(left - kBrackets, kWidestBar);
  const bool has_bar = state.total > 0 && bar >= kNarrowestBar;
  return cut_to(count + (has_bar ? bar_of(state, bar) : "") + rest, columns);
}

std::string progress_line_text(const ProgressState& state) {
  std::string text = count_text(state);
  for (const std::string& detail : details_of(state))
    text += "  " + detail;
  return text;
}

}  // namespace antisd::inline run
