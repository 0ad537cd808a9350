#include "data/column_aliases.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"

namespace antisd::inline data {
namespace {

const std::vector<std::string_view>& aliases_of(const std::string& column) {
  static const std::vector<std::string_view> problems = {
      "problem", "prompt", "question", "query", "instruction", "problem_statement"};
  static const std::vector<std::string_view> answers = {"answer", "final_answer", "expected_answer",
                                                        "ground_truth", "gt"};
  return column == "problem" ? problems : answers;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

bool holds_text(const Json& value) {
  return value.is_string() &&
         value.get_ref<const std::string&>().find_first_not_of(" \t\r\n") != std::string::npos;
}

// A text or chat messages for a problem; a text or number for an answer.
bool can_be(const std::string& column, const Json& value) {
  if (column == "problem") return holds_text(value) || (value.is_array() && !value.empty());
  return value.is_string() || value.is_number();
}

// Forms that count only where no column has a usual name: a chat that ends with the user, and an
// answer in a list of one, as in Dolci-RLZero.
std::optional<std::string> find_rare_form(const Json& row, const std::string& column) {
  const auto value = row.find(column == "problem" ? "messages" : "ground_truth");
  if (value == row.end() || !value->is_array() || value->empty()) return std::nullopt;
  if (column == "problem") {
    const Json& last = value->back();
    const bool asks = last.is_object() && last.value("role", Json()) == "user";
    return asks ? std::optional<std::string>("messages") : std::nullopt;
  }
  const bool one = value->size() == 1 && ((*value)[0].is_string() || (*value)[0].is_number());
  return one ? std::optional<std::string>("ground_truth") : std::nullopt;
}

std::string_view trimmed_line(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

// "1,234,567" -> "1234567"; "(1,2)" stays.
std::string without_thousands_marks(std::string_view text) {
  const std::size_t sign = text.starts_with('-') ? 1 : 0;
  const std::size_t end = std::min(text.find('.'), text.size());
  const std::string_view digits = text.substr(sign, end - sign);
  if (digits.find(',') == std::string_view::npos || digits.find(',') > 3 || digits.empty() ||
      digits.front() == ',' ||
      text.substr(end).find_first_not_of(".0123456789") != std::string_view::npos)
    return std::string(text);
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const bool marks = (digits.size() - i) % 4 == 0;
    const bool fits = marks ? digits[i] == ',' : digits[i] >= '0' && digits[i] <= '9';
    if (!fits) return std::string(text);
  }
  std::string plain(text);
  std::erase(plain, ',');
  return plain;
}

}  // namespace

std::optional<std::string> find_alias(const Json& row, const std::string& column,
                                      const std::string& where) {
  std::vector<std::string> found;
  const Json* first = nullptr;
  for (const std::string_view alias : aliases_of(column)) {
    for (const auto& [key, value] : row.items()) {
      if (lower(key) != alias || !can_be(column, value)) continue;
      if (first != nullptr && *first == value) continue;
      if (first == nullptr) first = &value;
      found.push_back(key);
    }
  }
  // An instruction with an input of its own is half of a problem.
  const auto input = row.find("input");
  if (found.size() == 1 && lower(found[0]) == "instruction" && input != row.end() &&
      holds_text(*input))
    found.push_back("input");
  if (found.empty()) return find_rare_form(row, column);
  if (found.size() == 1) return found.front();
  throw InputError(
      fmt::format("'{}' could be any of the columns {}", column, fmt::join(found, ", ")),
      {.where = where,
       .remedy = fmt::format("choose: data.map = {{{} = \"{}\"}} (--map {}={})", column, found[0],
                             column, found[0])});
}

std::optional<std::string> answer_after_marks(std::string_view text) {
  constexpr std::string_view kMarks = "####";
  const std::size_t marks = text.rfind(kMarks);
  if (marks == std::string_view::npos || (marks > 0 && text[marks - 1] != '\n'))
    return std::nullopt;
  const std::string_view answer = trimmed_line(text.substr(marks + kMarks.size()));
  if (answer.empty() || answer.find('\n') != std::string_view::npos) return std::nullopt;
  return without_thousands_marks(answer);
}

std::optional<std::string> boxed_answer(std::string_view text) {
  constexpr std::string_view kBoxed = "\\boxed";
  for (std::size_t at = text.rfind(kBoxed); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : text.rfind(kBoxed, at - 1)) {
    const std::size_t open = text.find_first_not_of(' ', at + kBoxed.size());
    if (open == std::string_view::npos) continue;
    if (text[open] != '{') {  // \boxed 2, as a few rows of MATH write it
      const std::size_t end = std::min(text.find_first_of("$ \n.", open), text.size());
      if (open > at + kBoxed.size() && end > open)
        return std::string(text.substr(open, end - open));
      continue;
    }
    int depth = 0;
    for (std::size_t i = open; i < text.size(); ++i) {
      if (text[i] == '\\') {
        ++i;  // \{ and \} are not braces of TeX's groups
      } else if (text[i] == '{') {
        ++depth;
      } else if (text[i] == '}' && --depth == 0) {
        return std::string(text.substr(open + 1, i - open - 1));
      }
    }
  }
  return std::nullopt;
}

}  // namespace antisd::inline data
