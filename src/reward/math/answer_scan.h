// Small scanners for finding an answer in prose.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reward/math/characters.h"

namespace antisd::inline reward::math {

inline constexpr auto npos = std::string_view::npos;

// Whether the text starts with the lower-case word, in any case, and the word ends there.
bool starts_with_word(std::string_view text, std::string_view word);

// Without blanks and bold marks at both ends.
std::string_view trim(std::string_view text);

// What may separate formulas of one answer: a comma, "and" or "or", and layout.
bool is_connector(std::string_view gap);

// "a, b, c"
std::string join(const std::vector<std::string_view>& parts);

// Formulas of a text: $...$, $$...$$, \(...\), \[...\].
struct Formula {
  std::size_t begin, end;
  std::string_view content;
};

std::vector<Formula> formulas(std::string_view text);

}  // namespace antisd::inline reward::math
