#include "text/tokenizer/scanner.h"

#include <array>

#include "core/utf8.h"
#include "text/tokenizer/unicode.h"

namespace antisd::inline text {

const std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string_view kCl100kPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

namespace {

using Class = CharacterClass;

constexpr std::array<Class, 128> make_ascii_classes() {
  std::array<Class, 128> classes{};
  for (int c = 0; c < 128; ++c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool space = c == ' ' || (c >= 9 && c <= 13);
    classes[c] = letter                 ? Class::kLetter
                 : c >= '0' && c <= '9' ? Class::kNumber
                 : space                ? Class::kSpace
                                        : Class::kOther;
  }
  return classes;
}
constexpr std::array<Class, 128> kAsciiClasses = make_ascii_classes();

// The class of the code point at `position`, which moves past it.
Class next_class(std::string_view text, std::size_t& position) {
  const auto byte = static_cast<unsigned char>(text[position]);
  if (byte < 128) {
    ++position;
    return kAsciiClasses[byte];
  }
  return character_class(next_code_point(text, position));
}

// The end of the run of `wanted` that starts at `position`.
std::size_t run_end(std::string_view text, std::size_t position, Class wanted) {
  while (position < text.size()) {
    std::size_t next = position;
    if (next_class(text, next) != wanted) break;
    position = next;
  }
  return position;
}

bool is_line_end(char c) {
  return c == '\r' || c == '\n';
}

// \s+(?!\S)|\s+ : the whole run at the text's end, otherwise all but its last code point, which
// belongs to the next piece.
std::size_t spaces_length(std::string_view text, std::size_t begin, std::size_t end) {
  if (end == text.size()) return end - begin;
  std::size_t last = end - 1;
  while ((static_cast<unsigned char>(text[last]) & 0xC0) == 0x80)
    --last;
  return last > begin ? last - begin : end - begin;
}

// Bytes of 's, 't, 're, 've, 'm, 'll or 'd at `position`, 0 if there is none.
std::size_t contraction_length(std::string_view text, std::size_t position, bool fold_case) {
  const auto letter = [&](std::size_t i) -> char {
    if (position + i >= text.size()) return 0;
    const char c = text[position + i];
    return fold_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  const char first = letter(1), second = letter(2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if ((first == 'r' || first == 'v') && second == 'e') return 3;
  if (first == 'l' && second == 'l') return 3;
  // U+017F, the long s, folds to s.
  if (fold_case && text.substr(position + 1, 2) == "\u017F") return 3;
  return 0;
}

}  // namespace

std::optional<Scanner> find_scanner(std::string_view pattern) {
  if (pattern == kGpt2Pattern) return Scanner::kGpt2;
  if (pattern == kQwen2Pattern) return Scanner::kQwen2;
  if (pattern == kCl100kPattern) return Scanner::kCl100k;
  return std::nullopt;
}

std::size_t gpt2_piece(std::string_view text, std::size_t position) {
  if (text[position] == '\'') {
    if (const std::size_t length = contraction_length(text, position, false)) return length;
  }
  std::size_t next = position;
  Class kind = next_class(text, next);
  if (text[position] == ' ' && next < text.size()) {
    std::size_t after = next;
    const Class following = next_class(text, after);
    if (following != Class::kSpace) {
      kind = following;
      next = after;
    }
  }
  const std::size_t end = run_end(text, next, kind);
  return kind == Class::kSpace ? spaces_length(text, position, end) : end - position;
}

std::size_t cl100k_piece(std::string_view text, std::size_t position, int max_digits) {
  const char lead = text[position];
  if (lead == '\'') {
    if (const std::size_t length = contraction_length(text, position, true)) return length;
  }
  std::size_t next = position;
  const Class kind = next_class(text, next);
  if (kind == Class::kLetter) return run_end(text, next, Class::kLetter) - position;
  if (kind == Class::kNumber) {
    for (int digits = 1; digits < max_digits && next < text.size(); ++digits) {
      std::size_t after = next;
      if (next_class(text, after) != Class::kNumber) break;
      next = after;
    }
    return next - position;
  }

  Class following = Class::kSpace;
  std::size_t after = next;
  if (next < text.size()) following = next_class(text, after);
  if (following == Class::kLetter && !is_line_end(lead)) {
    return run_end(text, after, Class::kLetter) - position;
  }
  if (kind == Class::kOther || (lead == ' ' && following == Class::kOther && next < text.size())) {
    std::size_t end = run_end(text, next, Class::kOther);
    while (end < text.size() && is_line_end(text[end]))
      ++end;
    return end - position;
  }

  const std::size_t end = run_end(text, next, Class::kSpace);
  for (std::size_t i = end; i > position; --i) {
    if (is_line_end(text[i - 1])) return i - position;  // \s*[\r\n]+ ends at the run's last newline
  }
  return spaces_length(text, position, end);
}

}  // namespace antisd::inline text
