// Small readers that the search for an answer in prose is made of.
#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace antisd::math {

inline constexpr auto npos = std::string_view::npos;

inline bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}
inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
inline bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}
inline char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

// Whether the text starts with the lower-case word, in any case, and the word ends there.
bool starts_with_word(std::string_view text, std::string_view word);

// Without blanks and bold marks at both ends.
std::string_view trim(std::string_view text);

// The end of the group opening at `open` (its closing brace), or npos.
std::size_t group_end(std::string_view text, std::size_t open);

// What may stand between two formulas that belong together: a comma, "and" or "or", and layout.
bool is_connector(std::string_view gap);

// "a, b, c"
std::string join(const std::vector<std::string_view>& parts);

// Formulas of a text: $...$, $$...$$, \(...\), \[...\].
struct Formula {
  std::size_t begin, end;
  std::string_view content;
};

std::vector<Formula> formulas(std::string_view text);

}  // namespace antisd::math
