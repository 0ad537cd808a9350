#include "text/jinja/unicode.h"

#include <algorithm>
#include <cstring>

#include <utf8proc.h>

#include "core/utf8.h"
#include "text/tokenizer/unicode.h"

namespace antisd::inline text::jinja {
namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

std::vector<char32_t> sorted_set(std::string_view characters) {
  std::vector<char32_t> set;
  for (std::size_t at = 0; at < characters.size();)
    set.push_back(next_code_point(characters, at));
  std::sort(set.begin(), set.end());
  return set;
}

}  // namespace

bool is_space(char32_t c) {
  return is_white_space(c) || (c >= 0x1C && c <= 0x1F);
}

bool is_alphabetic(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_ND;
}

bool is_digit(char32_t c) {
  const bool superscript = c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 ||
                           (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089);
  return superscript || is_decimal(c);
}

bool is_numeric(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

bool is_printable(char32_t c) {
  if (c < 0x7F) return c >= 0x20;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool is_upper(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LU;
}

bool is_lower(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LL;
}

bool is_title(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LT;
}

bool is_line_end(char32_t c) {
  return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

// utf8proc maps one code point to one; of the letters that expand, only the sharp s is common.
void append_upper(std::string& text, char32_t c) {
  if (c == 0xDF) {
    text += "SS";
  } else {
    append_utf8(text, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
  }
}

void append_title(std::string& text, char32_t c) {
  if (c == 0xDF) {
    text += "Ss";
  } else {
    append_utf8(text, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
  }
}

char32_t to_lower(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

std::string upper(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();)
    append_upper(result, next_code_point(text, at));
  return result;
}

std::string lower(std::string_view text) {
  return to_lowercase(text);
}

std::string capitalized(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const bool first = at == 0;
    const char32_t c = next_code_point(text, at);
    if (first) {
      append_title(result, c);
    } else {
      append_utf8(result, to_lower(c));
    }
  }
  return result;
}

std::string titled(std::string_view text) {
  std::string result;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (inside) {
      append_utf8(result, to_lower(c));
    } else {
      append_title(result, c);
    }
    inside = is_upper(c) || is_lower(c) || is_title(c);
  }
  return result;
}

std::string_view strip(std::string_view text, const std::string* characters, bool left,
                       bool right) {
  const std::vector<char32_t> set =
      characters == nullptr ? std::vector<char32_t>() : sorted_set(*characters);
  const auto goes = [&](char32_t c) {
    return characters == nullptr ? is_space(c) : std::binary_search(set.begin(), set.end(), c);
  };
  return antisd::strip(text, left, right, goes);
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    const char32_t c = next_code_point(text, at);
    if (!is_line_end(c)) continue;
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.push_back(text.substr(begin, (keep_ends ? at : here) - begin));
    begin = at;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

std::size_t find_text(std::string_view text, std::string_view needle, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  // glibc's memmem is never quadratic; string_view::find may be.
  const void* found = memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

}  // namespace antisd::inline text::jinja
