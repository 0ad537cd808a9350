#include "report/row_fields.h"

#include <charconv>
#include <cmath>

#include "core/error.h"
#include "io/json.h"

namespace antisd::inline report {
namespace {

void skip_space(std::string_view text, std::size_t& at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t' || text[at] == '\r'))
    ++at;
}

// `at` is on a quote and moves past the closing one. False if there is none.
bool skip_string(std::string_view text, std::size_t& at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      ++at;
      return true;
    }
  }
  return false;
}

bool skip_nested(std::string_view text, std::size_t& at) {
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      if (!skip_string(text, at)) return false;
      continue;
    }
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    ++at;
    if (depth == 0) return true;
  }
  return false;
}

bool skip_value(std::string_view text, std::size_t& at) {
  if (at >= text.size()) return false;
  if (text[at] == '"') return skip_string(text, at);
  if (text[at] == '[' || text[at] == '{') return skip_nested(text, at);
  const std::size_t end = text.find_first_of(",} \t\r", at);
  if (end == std::string_view::npos || end == at) return false;
  at = end;
  return true;
}

}  // namespace

bool for_each_field(std::string_view row,
                    const std::function<void(std::string_view, std::string_view)>& take) {
  std::size_t at = 0;
  skip_space(row, at);
  if (at >= row.size() || row[at] != '{') return false;
  ++at;
  skip_space(row, at);
  if (at < row.size() && row[at] == '}') return true;
  while (true) {
    skip_space(row, at);
    const std::size_t key = at;
    if (at >= row.size() || row[at] != '"' || !skip_string(row, at)) return false;
    const std::size_t key_end = at;
    skip_space(row, at);
    if (at >= row.size() || row[at] != ':') return false;
    ++at;
    skip_space(row, at);
    const std::size_t value = at;
    if (!skip_value(row, at)) return false;
    take(row.substr(key + 1, key_end - key - 2), row.substr(value, at - value));
    skip_space(row, at);
    if (at >= row.size()) return false;
    if (row[at] == '}') return true;
    if (row[at] != ',') return false;
    ++at;
  }
}

std::optional<double> number_of(std::string_view value) {
  double number = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || stop != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<std::string> string_of(std::string_view value) {
  if (value.size() < 2 || value.front() != '"') return std::nullopt;
  try {
    return parse_json(value, "").get<std::string>();
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace antisd::inline report
