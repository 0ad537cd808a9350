// Characters and braces of answers: ASCII, independent of the locale.
#pragma once

#include <string>
#include <string_view>

namespace antisd::inline reward::math {

inline bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}
inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
inline bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
inline char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
inline std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    c = lower(c);
  return result;
}

// The end of the group that opens at `open` (its closing brace), or npos. A backslash escapes the
// next character.
inline std::size_t group_end(std::string_view text, std::size_t open) {
  std::size_t level = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    if (text[at] == '\\')
      ++at;
    else if (text[at] == '{')
      ++level;
    else if (text[at] == '}' && --level == 0)
      return at;
  }
  return std::string_view::npos;
}

}  // namespace antisd::inline reward::math
