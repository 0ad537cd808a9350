// The character properties of Python's str, for templates. Tokenizers use text/tokenizer/unicode.h,
// which follows the Unicode version of Hugging Face's tokenizers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace antisd::inline text::jinja {

bool is_space(char32_t c);  // str.isspace: white space and the four separators of ASCII
bool is_alphabetic(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_printable(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_title(char32_t c);
bool is_line_end(char32_t c);  // where str.splitlines splits

void append_upper(std::string& text, char32_t c);
void append_title(std::string& text, char32_t c);
char32_t to_lower(char32_t c);

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalized(std::string_view text);  // str.capitalize
std::string titled(std::string_view text);       // str.title

// The bytes that str.strip() and its variants leave. `characters` null: white space.
std::string_view strip(std::string_view text, const std::string* characters, bool left, bool right);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

// The first position of `needle` at or after `from`, in linear time; npos if there is none.
std::size_t find_text(std::string_view text, std::string_view needle, std::size_t from);

}  // namespace antisd::inline text::jinja
