#include "reward/math/answer_extract.h"

#include <algorithm>
#include <vector>

#include "reward/math/answer_scan.h"
#include "reward/math/latex_names.h"

namespace antisd::inline reward::math {
namespace {

constexpr std::size_t kMaxBareBytes =
    50'000;  // longer texts are not answers, so they are not searched for words

// The last formulas that form one answer, if a text has formulas and no numbers outside them.
std::optional<std::string> last_formulas(std::string_view text) {
  const std::vector<Formula> all = formulas(text);
  if (all.empty()) return std::nullopt;
  const std::string_view tail = text.substr(all.back().end);
  // "$x$ = 5" continues after its formula.
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

// The end of the first sentence of `text`.
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

// "4 (since 2 + 2 = 4)" without its remark: a final bracket that contains a word.
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

// The number of a sentence with several words and exactly one number: "She sold 18 of them".
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

bool tells(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return is_digit(c) || c == '$'; }) ||
         text.find("\\(") != npos || text.find("\\[") != npos;
}

// The last sentence with a number or formula, if the text is a whole solution.
std::string_view last_telling_sentence(std::string_view text) {
  static constexpr std::size_t kShortestSolution = 100;  // bytes; shorter texts are read whole
  if (text.size() < kShortestSolution) return text;
  std::size_t end = text.size();
  for (std::size_t at = text.size() - 1; at-- > 0;) {
    const std::string_view here = text.substr(at);
    std::size_t stop = here.starts_with("\n\n") ? 1 : 0;
    for (const std::string_view mark : {".", ".$", ".$$", ".\\]", ".\\)"})
      if (here.starts_with(mark) && mark.size() < here.size() && is_space(here[mark.size()]))
        stop = mark.size();
    if (stop == 0 || at + stop > end) continue;
    const std::string_view sentence = trim(text.substr(at + stop, end - at - stop));
    if (tells(sentence)) return sentence;
    end = at + stop;
  }
  return tells(text.substr(0, end)) ? text.substr(0, end) : text;
}

// The answer from its formulas, or without the few words around it.
std::string without_prose(std::string_view text) {
  if (auto inside = last_formulas(text)) return *inside;
  // "x is 5", "It equals 5", "Solution: 5"
  std::size_t start = 0;
  int level = 0;  // of braces: \text{the value is } 5 is read whole
  for (std::size_t at = 1; at < text.size(); ++at) {
    level += (text[at - 1] == '{') - (text[at - 1] == '}');
    if (text[at - 1] != ' ' || level > 0) continue;
    for (const std::string_view verb : {"is ", "are ", "equals ", "be ", "it's "})
      if (text.size() - at > verb.size() && starts_with_word(text.substr(at), verb))
        start = at + verb.size();
  }
  text = trim(text.substr(start));
  for (const std::string_view word :
       {"answer:", "solution:", "result:", "approximately ", "about ", "exactly ", "the "})
    if (starts_with_word(text, word) && text.size() > word.size())
      text = trim(text.substr(word.size()));
  while (!text.empty() && !text.ends_with("...") &&
         (text.back() == '.' || text.back() == ',' || text.back() == ';') && text.size() > 1)
    text.remove_suffix(1);
  for (const std::string_view reason : {", since ", ", because ", ", not ", ", which ", ", where "})
    text = text.substr(0, text.find(reason));
  text = trim(without_remark(text));
  if (const std::string_view number = only_number(text); !number.empty())
    return std::string(number);
  return std::string(text);
}

// The line after a line with only "Final answer", in bold or as a heading.
std::optional<std::string> below_heading(std::string_view before, std::string_view behind) {
  static constexpr std::string_view kMarks = " *#:_";
  static constexpr std::size_t kLongestHeading = 40;
  std::string_view lead = before.substr(before.size() - std::min(before.size(), kLongestHeading));
  if (lead.size() < before.size() && lead.find('\n') == npos) return std::nullopt;
  lead = lead.substr(lead.find_last_of('\n') + 1);
  lead.remove_prefix(std::min(lead.find_first_not_of(kMarks), lead.size()));
  if (starts_with_word(lead, "final")) lead.remove_prefix(5);
  if (lead.find_first_not_of(kMarks) != npos) return std::nullopt;
  const std::size_t end = behind.find_first_not_of(kMarks);
  if (end == npos || behind[end] != '\n') return std::nullopt;
  const std::string_view below = trim(behind.substr(end));
  const std::string_view line = trim(below.starts_with("$$") || below.starts_with("\\[")
                                         ? below.substr(0, 2000)
                                         : below.substr(0, std::min(below.find('\n'), npos)));
  if (line.empty()) return std::nullopt;
  return without_prose(line.substr(0, 4000));
}

}  // namespace

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
    if (auto below = below_heading(text.substr(0, at), rest)) return below;
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
        // Parts of a number are short; longer groups are not.
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
  return without_prose(last_telling_sentence(text));
}

std::string_view without_next_turn(std::string_view response) {
  for (std::size_t at = response.find("<|"); at != npos; at = response.find("<|", at + 2)) {
    std::size_t end = at + 2;
    while (end < response.size() && (is_letter(response[end]) || response[end] == '_'))
      ++end;
    if (end >= at + 5 && response.substr(end, 2) == "|>") return response.substr(0, at);
  }
  return response;
}

std::string with_single_backslashes(std::string_view answer) {
  bool doubled = false;
  std::string single;
  for (std::size_t at = 0; at < answer.size();) {
    std::size_t end = at;
    while (end < answer.size() && answer[end] == '\\')
      ++end;
    if (end == at) {
      single += answer[at++];
      continue;
    }
    std::size_t name_end = end;
    while (name_end < answer.size() && is_letter(answer[name_end]))
      ++name_end;
    if ((end - at) % 2 == 1) return std::string(answer);
    const std::string_view name = answer.substr(end, name_end - end);
    doubled |= name.size() >= 2 && find_command(name).kind != NameClass::kUnknown;
    single.append((end - at) / 2, '\\');
    at = end;
  }
  return doubled ? single : std::string(answer);
}

}  // namespace antisd::inline reward::math
