#include "text/tokenizer/unicode.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <utf8proc.h>

#include "core/check.h"

namespace antisd::inline text {
namespace {

// Above this there are only unassigned code points, tags, variation selectors and private use.
constexpr char32_t kClassTableSize = 0x32400;

std::vector<CharacterClass> make_class_table() {
  std::vector<CharacterClass> table(kClassTableSize, CharacterClass::kOther);
  for (char32_t c = 0; c < kClassTableSize; ++c) {
    const char major = utf8proc_category_string(static_cast<utf8proc_int32_t>(c))[0];
    if (major == 'L') table[c] = CharacterClass::kLetter;
    if (major == 'N') table[c] = CharacterClass::kNumber;
    if (is_white_space(c)) table[c] = CharacterClass::kSpace;
  }
  for (const CodePointRange& range : kNewCategories) {
    for (char32_t c = range.first; c <= range.last && c < kClassTableSize; ++c) {
      table[c] = range.category[0] == 'L'   ? CharacterClass::kLetter
                 : range.category[0] == 'N' ? CharacterClass::kNumber
                                            : CharacterClass::kOther;
    }
  }
  return table;
}

// Starters that compose with nothing before them and are their own NFC: blocks of the common
// scripts, without exceptions.
bool is_stable_in_nfc(char32_t c) {
  return c < 0x300 || (c >= 0x388 && c <= 0x3FF) || (c >= 0x400 && c <= 0x482) ||
         (c >= 0x2010 && c <= 0x20CF) || (c >= 0x2190 && c <= 0x2328) ||
         (c >= 0x3005 && c <= 0x3029) || (c >= 0x3041 && c <= 0x3096) ||
         (c >= 0x30A1 && c <= 0x30FA) || (c >= 0x3400 && c <= 0x9FFF) ||
         (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xFF01 && c <= 0xFF9D) ||
         (c >= 0x1F300 && c <= 0x1FAFF);
}

int normal_form_options(NormalForm form) {
  switch (form) {
    case NormalForm::kNfc:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    case NormalForm::kNfd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    case NormalForm::kNfkc:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
    case NormalForm::kNfkd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
  }
  return 0;
}

int combining_class(utf8proc_int32_t c) {
  return utf8proc_get_property(c)->combining_class;
}

// Puts runs of marks in canonical order. utf8proc's own ordering is quadratic in the length of a
// run.
void order_marks(std::vector<utf8proc_int32_t>& text) {
  const auto is_mark = [](utf8proc_int32_t c) { return combining_class(c) != 0; };
  auto begin = text.begin();
  while ((begin = std::find_if(begin, text.end(), is_mark)) != text.end()) {
    const auto end = std::find_if_not(begin, text.end(), is_mark);
    std::stable_sort(begin, end, [](utf8proc_int32_t a, utf8proc_int32_t b) {
      return combining_class(a) < combining_class(b);
    });
    begin = end;
  }
}

// Appends the normal form of `segment` and clears it.
void finish_segment(std::vector<utf8proc_int32_t>& segment, int options, std::string& result) {
  order_marks(segment);
  auto length = static_cast<utf8proc_ssize_t>(segment.size());
  if (options & UTF8PROC_COMPOSE) {
    length =
        utf8proc_normalize_utf32(segment.data(), length, static_cast<utf8proc_option_t>(options));
    ANTISD_CHECK_LE(0, length);
  }
  for (utf8proc_ssize_t i = 0; i < length; ++i) {
    append_utf8(result, static_cast<char32_t>(segment[i]));
  }
  segment.clear();
}

}  // namespace

const CodePointRange* find_range(std::span<const CodePointRange> table, char32_t code_point) {
  const auto after =
      std::upper_bound(table.begin(), table.end(), code_point,
                       [](char32_t c, const CodePointRange& range) { return c < range.first; });
  if (after == table.begin()) return nullptr;
  const CodePointRange& range = *std::prev(after);
  return code_point <= range.last ? &range : nullptr;
}

const char* general_category(char32_t code_point) {
  if (const CodePointRange* range = find_range(kNewCategories, code_point)) return range->category;
  return utf8proc_category_string(static_cast<utf8proc_int32_t>(code_point));
}

bool is_white_space(char32_t c) {
  return (c >= 0x9 && c <= 0xD) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_word_character(char32_t c) {
  const std::string_view category = general_category(c);
  if (category[0] == 'L' || category[0] == 'M') return true;
  if (category == "Nd" || category == "Nl" || category == "Pc") return true;
  // Other_Alphabetic without marks, and Join_Control.
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189) || c == 0x200C ||
         c == 0x200D;
}

bool is_numeric(char32_t c) {
  return general_category(c)[0] == 'N' || find_range(kAlsoNumeric, c) != nullptr;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
  }
  if (general_category(c)[0] == 'P') return find_range(kNotPunctuation, c) == nullptr;
  return find_range(kAlsoPunctuation, c) != nullptr;
}

CharacterClass character_class(char32_t code_point) {
  static const std::vector<CharacterClass> table = make_class_table();
  return code_point < kClassTableSize ? table[code_point] : CharacterClass::kOther;
}

std::string to_lowercase(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const char32_t c = next_code_point(text, i);
    if (c == U'\u0130') {
      result += "i\u0307";
    } else if (const auto row = std::lower_bound(
                   kNewLowercase.begin(), kNewLowercase.end(), c,
                   [](const CodePointRange& range, char32_t value) { return range.first < value; });
               row != kNewLowercase.end() && row->first == c) {
      append_utf8(result, row->last);
    } else {
      append_utf8(result,
                  static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    }
  }
  return result;
}

bool is_surely_normal(std::string_view text, NormalForm form) {
  // The lead byte of the first code point that the form may change: U+0300, U+00C0, U+00A0.
  const unsigned char limit = form == NormalForm::kNfc ? 0xCC : 0x80;
  unsigned char highest = 0;
  for (const char c : text)
    highest = std::max(highest, static_cast<unsigned char>(c));
  if (highest < limit) return true;
  if (form != NormalForm::kNfc) return false;
  for (std::size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      ++i;
    } else if (!is_stable_in_nfc(next_code_point(text, i))) {
      return false;
    }
  }
  return true;
}

std::string normalize(std::string_view text, NormalForm form) {
  if (is_surely_normal(text, form)) return std::string(text);
  const int options = normal_form_options(form);
  std::string result;
  result.reserve(text.size());
  std::vector<utf8proc_int32_t> segment;
  std::array<utf8proc_int32_t, 32> parts{};  // the longest decomposition has 18 code points
  int boundary_class = 0;
  for (std::size_t i = 0; i < text.size();) {
    const char32_t c = next_code_point(text, i);
    if (find_range(kInertInNormalization, c) != nullptr) {
      finish_segment(segment, options, result);
      append_utf8(result, c);
      continue;
    }
    const auto count = utf8proc_decompose_char(
        static_cast<utf8proc_int32_t>(c), parts.data(), parts.size(),
        static_cast<utf8proc_option_t>((options & ~UTF8PROC_COMPOSE) | UTF8PROC_DECOMPOSE),
        &boundary_class);
    ANTISD_CHECK(count >= 0 && count <= static_cast<utf8proc_ssize_t>(parts.size()));
    segment.insert(segment.end(), parts.begin(), parts.begin() + count);
  }
  finish_segment(segment, options, result);
  return result;
}

}  // namespace antisd::inline text
