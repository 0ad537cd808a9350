// Properties of code points and the normal forms, as in Hugging Face's `tokenizers`: ids must not
// depend on the Unicode version of installed libraries, so the differences are recorded
// (unicode_data.cpp) and applied on top of utf8proc.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/utf8.h"

namespace antisd::inline text {

struct CodePointRange {
  char32_t first;
  char32_t last;
  const char* category = nullptr;  // two letters, e.g. "Lu"; only in kNewCategories
};

extern const std::span<const CodePointRange> kNewCategories;
extern const std::span<const CodePointRange> kInertInNormalization;
extern const std::span<const CodePointRange> kNotPunctuation;
extern const std::span<const CodePointRange> kAlsoPunctuation;
extern const std::span<const CodePointRange> kAlsoNumeric;
extern const std::span<const CodePointRange> kNewLowercase;  // pairs: from, to

// The range of a sorted table that contains `code_point`, or null.
const CodePointRange* find_range(std::span<const CodePointRange> table, char32_t code_point);

const char* general_category(char32_t code_point);  // two letters, "Cn" if unassigned
bool is_white_space(char32_t code_point);
bool is_word_character(char32_t code_point);  // \w of Unicode's UTS 18
bool is_numeric(char32_t code_point);
bool is_punctuation(char32_t code_point);

// Classes of the pre-tokenizer patterns, from a table: a few nanoseconds.
enum class CharacterClass : unsigned char { kOther, kLetter, kNumber, kSpace };
CharacterClass character_class(char32_t code_point);

// The text without the code points at both ends that `goes` accepts.
template <typename Predicate>
std::string_view strip(std::string_view text, bool left, bool right, Predicate&& goes) {
  while (left && !text.empty()) {
    std::size_t next = 0;
    if (!goes(next_code_point(text, next))) break;
    text.remove_prefix(next);
  }
  while (right && !text.empty()) {
    std::size_t last = text.size() - 1;
    while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80)
      --last;
    std::size_t next = last;
    if (!goes(next_code_point(text, next))) break;
    text.remove_suffix(text.size() - last);
  }
  return text;
}

std::string to_lowercase(std::string_view text);  // code point by code point, without context

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
// Whether a cheap check shows that the text is already in the form; false means unknown.
bool is_surely_normal(std::string_view text, NormalForm form);
std::string normalize(std::string_view text, NormalForm form);

}  // namespace antisd::inline text
