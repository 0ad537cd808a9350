#include "reward/math/answer_scan.h"

namespace antisd::inline reward::math {

bool starts_with_word(std::string_view text, std::string_view word) {
  if (text.size() < word.size()) return false;
  for (std::size_t k = 0; k < word.size(); ++k)
    if (lower(text[k]) != word[k]) return false;
  return text.size() == word.size() || !is_letter(text[word.size()]) || !is_letter(word.back());
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (is_space(text.front()) || text.starts_with("**")))
    text.remove_prefix(text.front() == '*' ? 2 : 1);
  while (!text.empty() && (is_space(text.back()) || text.ends_with("**")))
    text.remove_suffix(text.back() == '*' ? 2 : 1);
  return text;
}

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

}  // namespace antisd::inline reward::math
