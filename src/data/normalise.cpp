#include "data/normalise.h"

#include <algorithm>
#include <array>

#include <utf8proc.h>
#include <xxhash.h>

#include "core/utf8.h"
#include "text/tokenizer/unicode.h"

namespace antisd::inline data {
namespace {

bool is_ascii_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

char fold_ascii(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

void append_folded(std::string& text, char32_t c) {
  // A case folding has at most three code points.
  std::array<utf8proc_int32_t, 4> folded{};
  int boundary = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(c), folded.data(), folded.size(), UTF8PROC_CASEFOLD, &boundary);
  if (count < 1 || count > static_cast<utf8proc_ssize_t>(folded.size())) {
    append_utf8(text, c);
    return;
  }
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    append_utf8(text, static_cast<char32_t>(folded[static_cast<std::size_t>(i)]));
  }
}

bool is_word(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return true;
    default:
      return false;
  }
}

// Scripts without spaces between words (and Hangul, where a syllable is specific enough).
bool stands_alone(char32_t c) {
  return (c >= 0x3040 && c <= 0x30FF) || (c >= 0x3400 && c <= 0x9FFF) ||
         (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x20000 && c <= 0x3FFFF);
}

bool is_ascii_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
}

}  // namespace

std::string normalised_text(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  bool blank_due = false;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (static_cast<unsigned char>(c) < 0x80) {
      ++i;
      if (is_ascii_space(c)) {
        blank_due = !result.empty();
        continue;
      }
      if (blank_due) result += ' ';
      blank_due = false;
      result += fold_ascii(c);
      continue;
    }
    const char32_t point = next_code_point(text, i);
    if (is_white_space(point)) {
      blank_due = !result.empty();
      continue;
    }
    if (blank_due) result += ' ';
    blank_due = false;
    append_folded(result, point);
  }
  return result;
}

std::vector<std::uint64_t> word_hashes(std::string_view text) {
  const std::string folded = normalised_text(text);
  std::vector<std::uint64_t> words;
  words.reserve(folded.size() / 4);
  std::size_t start = 0, end = 0;  // the current word
  const auto finish = [&] {
    if (end > start) words.push_back(XXH3_64bits(folded.data() + start, end - start));
  };
  for (std::size_t i = 0; i < folded.size();) {
    const std::size_t here = i;
    bool word = false, alone = false;
    if (static_cast<unsigned char>(folded[i]) < 0x80) {
      word = is_ascii_word(folded[i++]);
    } else {
      const char32_t point = next_code_point(folded, i);
      alone = stands_alone(point);
      word = alone || is_word(point);
    }
    if (!word || alone) {
      finish();
      if (alone) words.push_back(XXH3_64bits(folded.data() + here, i - here));
      start = end = i;
    } else {
      end = i;
    }
  }
  finish();
  return words;
}

std::vector<std::uint64_t> word_ngrams(std::string_view text, std::size_t n) {
  const std::vector<std::uint64_t> words = word_hashes(text);
  std::vector<std::uint64_t> grams;
  if (n == 0 || words.size() < n) return grams;
  grams.reserve(words.size() - n + 1);
  for (std::size_t i = 0; i + n <= words.size(); ++i) {
    grams.push_back(XXH3_64bits(words.data() + i, n * sizeof(words[0])));
  }
  std::sort(grams.begin(), grams.end());
  grams.erase(std::unique(grams.begin(), grams.end()), grams.end());
  return grams;
}

std::int64_t count_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

}  // namespace antisd::inline data
