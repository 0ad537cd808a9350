// UTF-8, strictly as Unicode defines it: no surrogates, no over-long forms, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace antisd::inline core {

// The byte offset of the first ill-formed sequence, or nothing where the text is well-formed.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

// Decodes the code point at `position` and advances past it. An ill-formed byte gives U+FFFD and
// advances by one.
char32_t next_code_point(std::string_view text, std::size_t& position);

void append_utf8(std::string& text, char32_t code_point);

// Text with every ill-formed sequence replaced by U+FFFD, one per maximal subpart, which is what
// Rust's from_utf8_lossy and Python's errors="replace" do.
std::string replace_invalid_utf8(std::string_view text);

}  // namespace antisd::inline core
