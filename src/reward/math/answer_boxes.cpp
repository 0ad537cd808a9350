// The boxes of a response, and which of them form one answer.
#include <algorithm>

#include "reward/math/answer_extract.h"
#include "reward/math/answer_scan.h"

namespace antisd::inline reward::math {
namespace {

struct Box {
  std::size_t begin, end;  // of the whole command
  std::string_view content;
};

// The box whose command starts at `at`, if it is complete and not empty.
std::optional<Box> read_box(std::string_view text, std::size_t at) {
  std::size_t behind = at;
  for (const std::string_view name : {"\\boxed", "\\fbox", "\\framebox"})
    if (text.substr(at, name.size()) == name) behind = at + name.size();
  if (behind == at || (behind < text.size() && is_letter(text[behind]))) return std::nullopt;
  std::size_t open = behind;
  while (open < text.size() && is_space(text[open]))
    ++open;
  if (open < text.size() && text[open] == '{') {
    const std::size_t close = group_end(text, open);
    if (close == npos) return std::nullopt;
    std::string_view content = trim(text.substr(open + 1, close - open - 1));
    if (content.size() > 2 && content.front() == '$' && content.find('$', 1) == content.size() - 1)
      content = trim(content.substr(1, content.size() - 2));
    if (content.empty()) return std::nullopt;
    return Box{at, close + 1, content};
  }
  if (open == behind) return std::nullopt;
  std::size_t end = open;  // \boxed 5
  while (end < text.size() && !is_space(text[end]) && text[end] != '$')
    ++end;
  if (end == open) return std::nullopt;
  return Box{at, end, text.substr(open, end - open)};
}

std::optional<Box> box_before(std::string_view text, std::size_t limit) {
  // Unfinished boxes are rare, but a text may consist of them: limit the cost.
  int tries = 0;
  while (limit > 0 && tries < 8) {
    const std::string_view head = text.substr(0, limit);
    const std::size_t boxed = head.rfind("box");
    if (boxed == npos) return std::nullopt;
    limit = boxed;
    for (const std::size_t back : {std::size_t{1}, std::size_t{2}, std::size_t{6}}) {
      if (boxed < back || text[boxed - back] != '\\') continue;
      ++tries;
      if (auto box = read_box(text, boxed - back)) return box;
    }
  }
  return std::nullopt;
}

// Without layout at the end: blanks, $, braces, bold marks, \\( and \\text{.
std::string_view without_layout_behind(std::string_view text) {
  static constexpr std::string_view kMarks[] = {
      "\\text{", "\\mbox{", "\\textbf{", "\\quad", "\\(", "\\)", "\\[", "\\]", "\\,", "\\;", "\\ "};
  while (!text.empty()) {
    std::size_t drop = std::string_view(" \t\r\n$}{*").find(text.back()) != npos ? 1 : 0;
    for (const std::string_view mark : kMarks)
      if (text.ends_with(mark)) drop = mark.size();
    if (drop == 0) return text;
    text.remove_suffix(drop);
  }
  return text;
}

// Without the name of the next box: "y =", "x_2 =" or "(b)".
std::string_view without_name_behind(std::string_view gap) {
  const auto named = [](char c) {
    return is_letter(c) || is_digit(c) || std::string_view("_{}'\\").find(c) != npos;
  };
  std::string_view head = without_layout_behind(gap);
  if (head.ends_with("=")) {
    head = without_layout_behind(head.substr(0, head.size() - 1));
    std::size_t start = head.size();
    while (start > 0 && head.size() - start < 12 && named(head[start - 1]))
      --start;
    return start < head.size() ? head.substr(0, start) : gap;
  }
  if (head.ends_with(")") && head.size() >= 3 && head[head.size() - 3] == '(')
    return head.substr(0, head.size() - 3);
  return gap;
}

// Whether two boxes with this text between them form one answer: only layout in one line, or a
// phrase that ends with a comma, "and" or "or": "papers and", ", y =", "for (a), and for (b)".
bool joins_boxes(std::string_view gap) {
  if (gap.size() > 60) return false;
  const std::string_view phrase = without_layout_behind(without_name_behind(gap));
  if (phrase.empty()) return without_layout_behind(gap).empty() && gap.find('\n') == npos;
  if (is_connector(phrase)) return true;
  if (phrase.find_first_of("\n.:=<>") != npos) return false;
  const auto ends_with_word = [&](std::string_view word) {
    return phrase.size() > word.size() && phrase.ends_with(word) &&
           !is_letter(phrase[phrase.size() - word.size() - 1]);
  };
  return phrase.back() == ',' || phrase.back() == ';' || ends_with_word("and") ||
         ends_with_word("or");
}

// "The final answer is $7$.", repeated after the box of some step.
std::optional<std::string> final_formula(std::string_view text) {
  static constexpr std::string_view kWords = "final answer is";
  const std::size_t at = text.rfind(kWords);
  if (at == npos) return std::nullopt;
  const std::string_view rest = trim(text.substr(at + kWords.size(), 4000));
  const std::vector<Formula> found = formulas(rest);
  if (found.empty() || found[0].begin != 0) return std::nullopt;
  const std::string_view behind = trim(rest.substr(found[0].end));
  if (!behind.empty() && behind[0] != '.') return std::nullopt;
  return std::string(found[0].content);
}

}  // namespace

std::optional<std::string> last_box(std::string_view text) {
  std::optional<Box> box = box_before(text, text.size());
  if (!box) return std::nullopt;
  if (auto later = final_formula(text.substr(box->end))) return later;
  std::vector<std::string_view> parts = {box->content};
  std::size_t begin = box->begin;
  while (parts.size() < 32) {
    const std::optional<Box> before = box_before(text, begin);
    if (!before || before->end > begin ||
        !joins_boxes(text.substr(before->end, begin - before->end)))
      break;
    parts.insert(parts.begin(), before->content);
    begin = before->begin;
  }
  const bool repeated =
      std::all_of(parts.begin(), parts.end(), [&](std::string_view p) { return p == parts[0]; });
  return repeated ? std::string(parts[0]) : join(parts);
}

}  // namespace antisd::inline reward::math
