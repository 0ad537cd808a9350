#include "core/utf8.h"

#include <cstdint>

namespace antisd::inline core {
namespace {

struct Sequence {
  char32_t code_point = 0;
  int length = 0;      // bytes of a well-formed sequence, 0 where it is ill-formed
  int bad_prefix = 1;  // bytes of the maximal subpart when ill-formed (Unicode 15, section 3.9)
};

Sequence read_sequence(std::string_view text, std::size_t position) {
  const auto byte = [&](std::size_t i) -> int {
    return position + i < text.size() ? static_cast<unsigned char>(text[position + i]) : -1;
  };
  const int lead = byte(0);
  if (lead < 0x80) return {static_cast<char32_t>(lead), 1};
  if (lead < 0xC2 || lead > 0xF4) return {};
  const int length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range excludes over-long forms, surrogates and what is above U+10FFFF.
  int low = 0x80, high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  char32_t code_point = lead & (0x7F >> length);
  for (int i = 1; i < length; ++i) {
    const int next = byte(i);
    if (next < low || next > high) return {0, 0, i};
    low = 0x80, high = 0xBF;
    code_point = code_point << 6 | (next & 0x3F);
  }
  return {code_point, length};
}

}  // namespace

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  std::size_t position = 0;
  while (position < text.size()) {
    if (static_cast<unsigned char>(text[position]) < 0x80) {
      ++position;
      continue;
    }
    const Sequence sequence = read_sequence(text, position);
    if (sequence.length == 0) return position;
    position += sequence.length;
  }
  return std::nullopt;
}

char32_t next_code_point(std::string_view text, std::size_t& position) {
  const Sequence sequence = read_sequence(text, position);
  position += sequence.length == 0 ? 1 : sequence.length;
  return sequence.length == 0 ? U'\uFFFD' : sequence.code_point;
}

void append_utf8(std::string& text, char32_t code_point) {
  const auto put = [&](std::uint32_t value) { text.push_back(static_cast<char>(value)); };
  const std::uint32_t c = code_point;
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F)), put(0x80 | (c >> 6 & 0x3F)),
        put(0x80 | (c & 0x3F));
  }
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  std::size_t position = 0;
  while (position < text.size()) {
    const Sequence sequence = read_sequence(text, position);
    if (sequence.length == 0) {
      append_utf8(result, U'\uFFFD');
      position += sequence.bad_prefix;
    } else {
      result.append(text.substr(position, sequence.length));
      position += sequence.length;
    }
  }
  return result;
}

}  // namespace antisd::inline core
