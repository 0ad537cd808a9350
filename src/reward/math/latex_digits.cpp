#include "reward/math/latex_digits.h"

#include "reward/math/characters.h"

namespace antisd::inline reward::math {
namespace {

// Joins groups of three digits: 1,000  1{,}000  1,\!000  1\,000  1 000.
std::size_t join_groups(std::string_view text, std::size_t at, bool group_digits,
                        std::string& digits) {
  while (true) {
    std::size_t next = 0;
    for (const std::string_view gap :
         {"{,}", ",\\!", ",\\,", "{,\\!}", "\\,", "\\ ", "\\!,", ",", " "}) {
      if (text.substr(at, gap.size()) != gap) continue;
      if (!group_digits && (gap == " " || gap.find(',') != gap.npos)) continue;
      next = at + gap.size();
      break;
    }
    while (next != 0 && next < text.size() && text[next] == ' ' && text[next - 1] == '!')
      ++next;
    if (next == 0 || next + 3 > text.size()) return at;
    for (std::size_t k = 0; k < 3; ++k)
      if (!is_digit(text[next + k])) return at;
    if (next + 3 < text.size() && is_digit(text[next + 3])) return at;
    digits += text.substr(next, 3);
    at = next + 3;
  }
}

// "e-3" after a mantissa is an exponent if the mantissa has a point, the exponent has two digits,
// or the answer has nothing else.
std::size_t exponent_end(std::string_view text, std::size_t at, std::string_view mantissa,
                         std::size_t answer_size) {
  if (at >= text.size() || (text[at] != 'e' && text[at] != 'E')) return at;
  std::size_t end = at + 1;
  const bool sign = end < text.size() && (text[end] == '-' || text[end] == '+');
  if (sign) ++end;
  const std::size_t first = end;
  while (end < text.size() && is_digit(text[end]))
    ++end;
  if (end == first || (end < text.size() && is_letter(text[end]))) return at;
  const bool whole = answer_size <= end - at + mantissa.size() + 1;  // a minus sign before it
  const bool exponent =
      !sign || whole || end - first >= 2 || mantissa.find('.') != std::string_view::npos;
  return exponent ? end : at;
}

}  // namespace

ScannedNumber scan_number_text(std::string_view text, std::size_t at, bool group_digits,
                               std::size_t answer_size) {
  const std::size_t start = at;
  while (at < text.size() && is_digit(text[at]))
    ++at;
  std::string digits(text.substr(start, at - start));
  if (!digits.empty() && digits.size() <= 3 && digits != "0")
    at = join_groups(text, at, group_digits, digits);
  if (at < text.size() && text[at] == '.' && text.substr(at, 3) != "...") {
    std::size_t end = at + 1;
    while (end < text.size() && is_digit(text[end]))
      ++end;
    // A point without digits after it belongs to the number in "1./3", and otherwise ends a
    // sentence.
    if (end > at + 1 ||
        (end < text.size() && std::string_view("/*eE\\").find(text[end]) != text.npos))
      digits += text.substr(at, end - at);
    at = end;
  }
  const std::size_t end = exponent_end(text, at, digits, answer_size);
  digits += text.substr(at, end - at);
  return {std::move(digits), end};
}

}  // namespace antisd::inline reward::math
