#include "reward/answer_extract.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace antisd::math {
namespace {

constexpr auto npos = std::string_view::npos;
constexpr std::size_t kMaxBareBytes =
    50'000;  // longer texts are no answers, so no words are looked for

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}
char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

bool starts_with_word(std::string_view text, std::string_view word) {
  if (text.size() < word.size()) return false;
  for (std::size_t k = 0; k < word.size(); ++k)
    if (lower(text[k]) != word[k]) return false;
  return text.size() == word.size() || !is_letter(text[word.size()]) || !is_letter(word.back());
}

// Without blanks and bold marks at both ends.
std::string_view trim(std::string_view text) {
  while (!text.empty() && (is_space(text.front()) || text.starts_with("**")))
    text.remove_prefix(text.front() == '*' ? 2 : 1);
  while (!text.empty() && (is_space(text.back()) || text.ends_with("**")))
    text.remove_suffix(text.back() == '*' ? 2 : 1);
  return text;
}

// The end of the group opening at `open` (its closing brace), or npos.
std::size_t group_end(std::string_view text, std::size_t open) {
  std::size_t level = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    if (text[at] == '\\')
      ++at;
    else if (text[at] == '{')
      ++level;
    else if (text[at] == '}' && --level == 0)
      return at;
  }
  return npos;
}

struct Box {
  std::size_t begin, end;  // of the whole command
  std::string_view content;
};

// The box whose command starts at `at`, where it is one with an end and a content.
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
  // Unfinished boxes are rare, but a text may be nothing else: give up before that costs much.
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

// What may stand between two boxes (or formulas) that belong together.
bool is_connector(std::string_view gap) {
  bool joined = false;
  std::size_t at = 0;
  if (gap.size() > 60) return false;
  while (at < gap.size()) {
    if (gap[at] == ',' || gap[at] == ';' || gap[at] == '&')
      joined = true, ++at;
    else if (starts_with_word(gap.substr(at), "and"))
      joined = true, at += 3;
    else if (starts_with_word(gap.substr(at), "or"))
      joined = true, at += 2;
    else if (gap.substr(at, 6) == "\\text{" || gap.substr(at, 6) == "\\quad ")
      at += 6;
    else if (gap.substr(at, 2) == "\\(" || gap.substr(at, 2) == "\\)" || gap.substr(at, 2) == "\\ ")
      at += 2;
    else if (is_space(gap[at]) || gap[at] == '$' || gap[at] == '}' || gap[at] == '*')
      ++at;
    else
      return false;
  }
  return joined;
}

std::string join(const std::vector<std::string_view>& parts) {
  std::string all;
  for (const std::string_view part : parts) {
    if (!all.empty()) all += ", ";
    all += part;
  }
  return all;
}

// Formulas of a text: $...$, $$...$$, \(...\), \[...\].
struct Formula {
  std::size_t begin, end;
  std::string_view content;
};

std::vector<Formula> formulas(std::string_view text) {
  std::vector<Formula> found;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    std::string_view open, close;
    if (rest.starts_with("\\$")) {
      at += 2;
      continue;
    }
    if (rest.starts_with("$$"))
      open = close = "$$";
    else if (rest.starts_with("$"))
      open = close = "$";
    else if (rest.starts_with("\\("))
      open = "\\(", close = "\\)";
    else if (rest.starts_with("\\["))
      open = "\\[", close = "\\]";
    if (open.empty()) {
      at += rest[0] == '\\' ? 2 : 1;
      continue;
    }
    std::size_t end = text.find(close, at + open.size());
    while (end != npos && close[0] == '$' && text[end - 1] == '\\')
      end = text.find(close, end + 1);
    if (end == npos) return found;
    const std::string_view content = trim(text.substr(at + open.size(), end - at - open.size()));
    if (!content.empty()) found.push_back({at, end + close.size(), content});
    at = end + close.size();
  }
  return found;
}

// The last formulas that belong together, where a text has formulas and its other parts no numbers.
std::optional<std::string> last_formulas(std::string_view text) {
  const std::vector<Formula> all = formulas(text);
  if (all.empty()) return std::nullopt;
  const std::string_view tail = text.substr(all.back().end);
  // "$x$ = 5" continues behind its formula.
  if (std::any_of(tail.begin(), tail.end(), [](char c) { return is_digit(c) || c == '='; }))
    return std::nullopt;
  std::size_t first = all.size() - 1;
  while (first > 0 &&
         is_connector(text.substr(all[first - 1].end, all[first].begin - all[first - 1].end)))
    --first;
  std::vector<std::string_view> parts;
  for (std::size_t k = first; k < all.size(); ++k)
    parts.push_back(all[k].content);
  std::string answer = join(parts);
  if (trim(tail).starts_with("%") || starts_with_word(trim(tail), "percent")) answer += "\\%";
  return answer;
}

// The end of the sentence that starts at the beginning of `text`.
std::size_t sentence_end(std::string_view text) {
  int level = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '{' || c == '(' || c == '[') ++level;
    if (c == '}' || c == ')' || c == ']') --level;
    if (c == '\n' && level <= 0) return at;
    if (c == '.' && (at + 1 == text.size() || is_space(text[at + 1]))) return at;
  }
  return text.size();
}

// "4 (since 2 + 2 = 4)" without its remark: a last bracket that holds a word.
std::string_view without_remark(std::string_view text) {
  const std::size_t open = text.rfind(" (");
  if (open == npos || open == 0 || !text.ends_with(")")) return text;
  std::size_t letters = 0;
  for (const char c : text.substr(open)) {
    if (c == '\\') return text;
    letters = is_letter(c) ? letters + 1 : 0;
    if (letters >= 4) return text.substr(0, open);
  }
  return text;
}

// The number of a sentence that has several words and just one number: "She sold 18 of them".
std::string_view only_number(std::string_view text) {
  int words = 0, numbers = 0;
  std::string_view number;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    // Anything that looks like a formula is read whole.
    if (std::string_view("\\=^(*/+|<>:").find(text[at]) != npos) return {};
    if (is_letter(text[at])) {
      while (end < text.size() && is_letter(text[end]))
        ++end;
      words += end - at >= 2;
    } else if (is_digit(text[at])) {
      while (end < text.size() &&
             (is_digit(text[end]) || ((text[end] == ',' || text[end] == '.' || text[end] == '/') &&
                                      end + 1 < text.size() && is_digit(text[end + 1]))))
        ++end;
      const bool negative = at > 0 && text[at - 1] == '-';
      if (end < text.size() && text[end] == '%') ++end;
      number = text.substr(at - negative, end - at + negative);
      ++numbers;
    }
    at = end;
  }
  return words >= 2 && numbers == 1 ? number : std::string_view();
}

// An answer out of its formulas, or out of the few words around it.
std::string without_prose(std::string_view text) {
  if (auto inside = last_formulas(text)) return *inside;
  // "x is 5", "It equals 5", "Solution: 5"
  std::size_t start = 0;
  int level = 0;  // of braces: \text{the value is } 5 stays whole
  for (std::size_t at = 1; at < text.size(); ++at) {
    level += (text[at - 1] == '{') - (text[at - 1] == '}');
    if (text[at - 1] != ' ' || level > 0) continue;
    for (const std::string_view verb : {"is ", "are ", "equals ", "be "})
      if (text.size() - at > verb.size() && starts_with_word(text.substr(at), verb))
        start = at + verb.size();
  }
  text = trim(text.substr(start));
  for (const std::string_view word :
       {"answer:", "solution:", "result:", "approximately ", "about ", "exactly ", "the "})
    if (starts_with_word(text, word) && text.size() > word.size())
      text = trim(text.substr(word.size()));
  while (!text.empty() && (text.back() == '.' || text.back() == ',' || text.back() == ';') &&
         text.size() > 1)
    text.remove_suffix(1);
  text = trim(without_remark(text));
  if (const std::string_view number = only_number(text); !number.empty())
    return std::string(number);
  return std::string(text);
}

}  // namespace

std::string visible_text(std::string_view response) {
  static constexpr std::string_view kOpen = "<think>", kClose = "</think>";
  std::string visible;
  bool thinking = false;
  std::size_t at = 0;
  while (at < response.size()) {
    const std::size_t tag = std::min(response.find('<', at), response.size());
    if (!thinking) visible += response.substr(at, tag - at);
    const std::string_view rest = response.substr(tag);
    if (rest.starts_with(kOpen)) {
      thinking = true;
      at = tag + kOpen.size();
    } else if (rest.starts_with(kClose)) {
      // Without an opening tag, all that came before was thought.
      if (thinking)
        visible += '\n';
      else
        visible.clear();
      thinking = false;
      at = tag + kClose.size();
    } else {
      if (!thinking) visible += rest.substr(0, 1);
      at = tag + 1;
    }
  }
  return thinking ? "" : visible;
}

std::optional<std::string> last_box(std::string_view text) {
  std::optional<Box> box = box_before(text, text.size());
  if (!box) return std::nullopt;
  std::vector<std::string_view> parts = {box->content};
  std::size_t begin = box->begin;
  while (parts.size() < 32) {
    const std::optional<Box> before = box_before(text, begin);
    if (!before || before->end > begin ||
        !is_connector(text.substr(before->end, begin - before->end)))
      break;
    parts.insert(parts.begin(), before->content);
    begin = before->begin;
  }
  const bool repeated =
      std::all_of(parts.begin(), parts.end(), [&](std::string_view p) { return p == parts[0]; });
  return repeated ? std::string(parts[0]) : join(parts);
}

std::optional<std::string> stated_answer(std::string_view text) {
  static constexpr std::string_view kOpen = "<answer>", kClose = "</answer>";
  if (const std::size_t tag = text.rfind(kOpen); tag != npos) {
    const std::string_view inside = text.substr(tag + kOpen.size());
    const std::string_view answer = trim(inside.substr(0, inside.find(kClose)));
    if (!answer.empty() && answer.size() <= kMaxBareBytes) return without_prose(answer);
  }
  if (const std::size_t marks = text.rfind("####"); marks != npos) {
    const std::string_view line = trim(text.substr(marks + 4));
    const std::string_view answer = trim(line.substr(0, line.find('\n')));
    if (!answer.empty()) return std::string(answer);
  }
  int tries = 0;
  for (std::size_t at = text.size(); at-- > 0 && tries < 50;) {
    if (lower(text[at]) != 'a' || !starts_with_word(text.substr(at, 6), "answer")) continue;
    ++tries;
    std::string_view rest = text.substr(at + 6);
    // "answer is", "answer to the question is:", "Answer:", "answers are"
    std::size_t gap = 0;
    bool found = false;
    for (; gap < rest.size() && gap < 80 && !found; ++gap) {
      if (rest[gap] == '\n' || rest[gap] == '.') break;
      if (rest[gap] == ':' || rest[gap] == '=') found = true;
      if (gap == 0 || rest[gap - 1] != ' ') continue;
      for (const std::string_view verb : {"is", "are", "was", "be"})
        if (starts_with_word(rest.substr(gap), verb)) {
          found = true;
          gap += verb.size() - 1;
          break;
        }
    }
    if (!found) continue;
    rest = rest.substr(gap);
    while (!rest.empty() &&
           (is_space(rest[0]) || rest[0] == '*' || rest[0] == ':' || rest[0] == '}'))
      rest.remove_prefix(1);
    const std::string_view sentence = rest.starts_with("$$") || rest.starts_with("\\[")
                                          ? rest.substr(0, 2000)
                                          : rest.substr(0, sentence_end(rest));
    const std::string_view answer = trim(sentence.substr(0, 4000));
    if (answer.empty()) continue;
    return without_prose(answer);
  }
  return std::nullopt;
}

std::optional<std::string> last_number(std::string_view text) {
  std::string_view best;
  std::size_t at = 0;
  while (at < text.size()) {
    if (!is_digit(text[at]) && text.substr(at, 5) != "\\frac" && text.substr(at, 6) != "\\dfrac") {
      ++at;
      continue;
    }
    std::size_t begin = at;
    if (begin > 0 && text[begin - 1] == '.') --begin;
    if (begin > 0 && text[begin - 1] == '-') --begin;
    if (is_digit(text[at])) {
      while (at < text.size() &&
             (is_digit(text[at]) || ((text[at] == ',' || text[at] == '.' || text[at] == '/') &&
                                     at + 1 < text.size() && is_digit(text[at + 1]))))
        ++at;
      if (text.substr(at, 2) == "\\%")
        at += 2;
      else if (text.substr(at, 1) == "%")
        ++at;
    } else {
      std::size_t end = text.find('{', at);
      if (end == npos || end > at + 8) {
        ++at;
        continue;
      }
      for (int part = 0; part < 2 && end != npos; ++part) {
        // Parts of a number are short; longer groups are none.
        end = end < text.size() && text[end] == '{'
                  ? group_end(text.substr(0, std::min(end + 200, text.size())), end)
                  : npos;
        if (end != npos) ++end;
      }
      if (end == npos) {
        ++at;
        continue;
      }
      at = end;
    }
    best = text.substr(begin, at - begin);
  }
  if (best.empty()) return std::nullopt;
  return std::string(best);
}

std::string bare_answer(std::string_view text) {
  if (auto box = last_box(text)) return *box;
  text = trim(text);
  if (text.size() > kMaxBareBytes) return std::string(text);
  if (auto stated = stated_answer(text)) return *stated;
  return without_prose(text);
}
}  // namespace antisd::math
