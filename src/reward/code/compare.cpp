#include "reward/code/compare.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "core/utf8.h"

namespace antisd::inline reward {
namespace {

constexpr double kTolerance = 1e-6;
constexpr double kExactIntegers = 9007199254740992.0;  // 2^53

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

// The next line without its newline and trailing blanks; `text` moves past it.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  while (!line.empty() && is_blank(line.back()))
    line.remove_suffix(1);
  return line;
}

std::string_view without_trailing_blanks(std::string_view text) {
  while (!text.empty() && (is_blank(text.back()) || text.back() == '\n'))
    text.remove_suffix(1);
  return text;
}

std::string_view take_word(std::string_view& line) {
  while (!line.empty() && is_blank(line.front()))
    line.remove_prefix(1);
  std::size_t end = 0;
  while (end < line.size() && !is_blank(line[end]))
    ++end;
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

std::optional<double> parse_number(std::string_view word) {
  if (!word.empty() && word.front() == '+') word.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

bool is_whole(std::string_view word) {
  return word.find_first_of(".eE") == std::string_view::npos;
}

bool same_word(std::string_view printed, std::string_view expected) {
  if (printed == expected) return true;
  if (is_whole(printed) && is_whole(expected)) return false;
  const auto a = parse_number(printed), b = parse_number(expected);
  if (!a || !b) return false;
  const double difference = std::abs(*a - *b);
  if (is_whole(expected)) return difference <= kTolerance && std::abs(*b) < kExactIntegers;
  return difference <= kTolerance * std::max(1.0, std::abs(*b));
}

bool same_line(std::string_view printed, std::string_view expected) {
  if (printed == expected) return true;
  while (true) {
    const std::string_view a = take_word(printed), b = take_word(expected);
    if (a.empty() || b.empty()) return a.empty() && b.empty();
    if (!same_word(a, b)) return false;
  }
}

std::string shortened(std::string_view line) {
  constexpr std::size_t kMost = 80;
  return replace_invalid_utf8(line.substr(0, kMost)) + (line.size() > kMost ? "..." : "");
}

}  // namespace

std::string describe_difference(std::string_view printed, std::string_view expected) {
  printed = without_trailing_blanks(printed);
  expected = without_trailing_blanks(expected);
  for (int line = 1; !printed.empty() || !expected.empty(); ++line) {
    const std::string_view got = take_line(printed), wanted = take_line(expected);
    if (same_line(got, wanted)) continue;
    return fmt::format("wrong answer in line {}: expected \"{}\", got \"{}\"", line,
                       shortened(wanted), shortened(got));
  }
  return "";
}

}  // namespace antisd::inline reward
