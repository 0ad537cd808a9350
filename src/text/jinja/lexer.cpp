#include "text/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "core/utf8.h"
#include "text/jinja/print.h"
#include "text/jinja/unicode.h"

namespace antisd::inline text::jinja {
namespace {

using Type = Token::Type;
constexpr std::size_t kNowhere = std::string::npos;

std::string normalized(std::string_view source) {
  std::string result;
  result.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      result += source[i];
      continue;
    }
    result += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!result.empty() && result.back() == '\n') result.pop_back();
  return result;
}

bool is_digit_of(char c, int base) {
  if (c >= '0' && c <= '9') return c - '0' < base;
  return base == 16 && std::isxdigit(static_cast<unsigned char>(c));
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalized(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size())
      read_root();
    add(Type::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw Failure{problem, "fix the template's syntax", line_};
  }

  void add(Type type, std::string text) { tokens_.push_back({type, std::move(text), line_}); }

  bool looking_at(std::string_view text) const {
    return std::string_view(source_).substr(at_, text.size()) == text;
  }

  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  // Advances and counts lines.
  void advance(std::size_t bytes) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(at_ + bytes),
                                         '\n'));
    at_ += bytes;
  }

  void skip_space() {
    while (at_ < source_.size()) {
      std::size_t next = at_;
      if (!is_space(next_code_point(source_, next))) return;
      advance(next - at_);
    }
  }

  // Text up to the tag at `end`, without the white space that the tag's sign removes.
  void add_data(std::size_t end, char sign, bool variable) {
    std::string_view text = std::string_view(source_).substr(at_, end - at_);
    if (sign == '-') {
      text = strip(text, nullptr, false, true);
    } else if (sign != '+' && !variable) {
      const std::size_t line_end = text.rfind('\n');
      const std::size_t begin = line_end == kNowhere ? 0 : line_end + 1;
      const bool starts_line = line_end != kNowhere || line_starting_;
      if (starts_line && strip(text.substr(begin), nullptr, true, false).empty()) {
        text = text.substr(0, begin);
      }
    }
    if (!text.empty()) add(Type::kData, std::string(text));
    advance(end - at_);
  }

  // The next "{{", "{%" or "{#".
  std::size_t find_tag() const {
    for (std::size_t i = source_.find('{', at_); i != kNowhere; i = source_.find('{', i + 1)) {
      const char next = i + 1 < source_.size() ? source_[i + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') return i;
    }
    return kNowhere;
  }

  char sign_at(std::size_t position) const {
    const char c = position < source_.size() ? source_[position] : '\0';
    return c == '-' || c == '+' ? c : '\0';
  }

  void read_root() {
    const std::size_t tag = find_tag();
    if (tag == kNowhere) {
      add(Type::kData, source_.substr(at_));
      advance(source_.size() - at_);
      return;
    }
    const char kind = source_[tag + 1];
    const char sign = sign_at(tag + 2);
    add_data(tag, sign, kind == '{');
    const std::size_t opening = sign == '\0' ? 2 : 3;
    if (kind == '%' && skip_raw_begin(opening)) {
      read_raw();
      return;
    }
    if (kind == '#') {
      advance(opening);
      read_comment();
      return;
    }
    add(kind == '{' ? Type::kVariableBegin : Type::kBlockBegin, "");
    advance(opening);
    read_tag(kind == '{' ? "}}" : "%}", kind == '{');
  }

  // After the end of a tag: skips what its sign or trim_blocks removes.
  void end_tag(std::size_t bytes, char sign, bool trim) {
    const std::size_t begin = at_;
    advance(bytes);
    if (sign == '-') {
      skip_space();
    } else if (trim && sign == '\0' && peek() == '\n') {
      advance(1);
    }
    line_starting_ = at_ > begin && source_[at_ - 1] == '\n';
  }

  void read_comment() {
    const std::size_t end = source_.find("#}", at_);
    if (end == kNowhere) fail("Missing end of comment tag");
    const char sign = end > at_ ? sign_at(end - 1) : '\0';
    advance(end - at_);
    end_tag(2, sign, true);
  }

  // "{% raw %}": its end trims only with "-".
  bool skip_raw_begin(std::size_t opening) {
    const std::size_t start = at_;
    const int line = line_;
    advance(opening);
    skip_space();
    if (looking_at("raw")) {
      advance(3);
      skip_space();
      const bool minus = looking_at("-%}");
      if (minus || looking_at("%}")) {
        end_tag(minus ? 3 : 2, minus ? '-' : '\0', false);
        return true;
      }
    }
    at_ = start;
    line_ = line;
    return false;
  }

  void read_raw() {
    for (std::size_t tag = source_.find("{%", at_); tag != kNowhere;
         tag = source_.find("{%", tag + 1)) {
      const char sign = sign_at(tag + 2);
      std::size_t end = tag + (sign == '\0' ? 2 : 3);
      const auto skip = [&] {
        for (std::size_t next = end; end < source_.size(); end = next) {
          if (!is_space(next_code_point(source_, next))) return;
        }
      };
      skip();
      if (source_.compare(end, 6, "endraw") != 0) continue;
      end += 6;
      skip();
      const char end_sign = sign_at(end);
      if (end_sign != '\0') ++end;
      if (source_.compare(end, 2, "%}") != 0) continue;
      add_data(tag, sign, false);
      advance(end - at_);
      end_tag(2, end_sign, true);
      return;
    }
    fail("Missing end of raw directive");
  }

  bool read_tag_end(std::string_view closing, bool variable) {
    if (!open_.empty()) return false;
    char sign = '\0';
    if (peek() == '-' || (peek() == '+' && !variable)) sign = peek();
    const std::size_t skipped = sign == '\0' ? 0 : 1;
    if (std::string_view(source_).substr(std::min(at_ + skipped, source_.size()), 2) != closing) {
      return false;
    }
    add(variable ? Type::kVariableEnd : Type::kBlockEnd, "");
    end_tag(skipped + 2, sign, !variable);
    return true;
  }

  void read_tag(std::string_view closing, bool variable) {
    open_.clear();
    while (true) {
      if (at_ >= source_.size()) return;  // the parser reports the missing end of the tag
      if (read_tag_end(closing, variable)) return;
      std::size_t next = at_;
      const char32_t c = next_code_point(source_, next);
      if (is_space(c)) {
        advance(next - at_);
      } else if (c >= '0' && c <= '9') {
        read_number();
      } else if (c == '_' || is_alphabetic(c)) {
        read_name();
      } else if (c == '\'' || c == '"') {
        read_string(static_cast<char>(c));
      } else {
        read_operator();
      }
    }
  }

  void read_name() {
    const std::size_t begin = at_;
    std::size_t end = at_;
    while (end < source_.size()) {
      std::size_t next = end;
      const char32_t c = next_code_point(source_, next);
      if (c != '_' && !is_alphabetic(c) && !is_decimal(c)) break;
      end = next;
    }
    add(Type::kName, source_.substr(begin, end - begin));
    advance(end - begin);
  }

  // The end of digits with single underscores between them, from `at`; `at` if there are none.
  std::size_t digits_end(std::size_t at, int base) const {
    while (at < source_.size()) {
      const bool joined =
          source_[at] == '_' && at + 1 < source_.size() && is_digit_of(source_[at + 1], base);
      if (!joined && !is_digit_of(source_[at], base)) return at;
      at += joined ? 2 : 1;
    }
    return at;
  }

  // The end of a float that starts here, or at_ if it is an integer.
  std::size_t float_end() const {
    if (at_ > 0 && source_[at_ - 1] == '.') return at_;
    const std::size_t whole = digits_end(at_, 10);
    std::size_t end = whole;
    if (end + 1 < source_.size() && source_[end] == '.' && is_digit_of(source_[end + 1], 10)) {
      end = digits_end(end + 1, 10);
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      std::size_t digits = end + 1;
      if (digits < source_.size() && (source_[digits] == '+' || source_[digits] == '-')) ++digits;
      if (digits < source_.size() && is_digit_of(source_[digits], 10)) {
        end = digits_end(digits, 10);
      }
    }
    return end == whole ? at_ : end;
  }

  std::size_t integer_end() const {
    if (peek() != '0') return digits_end(at_, 10);
    const char kind = static_cast<char>(std::tolower(static_cast<unsigned char>(peek(1))));
    const int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
    if (base != 0) {
      const std::size_t end = digits_end(at_ + 2, base);
      if (end > at_ + 2) return end;
    }
    std::size_t end = at_ + 1;
    while (end < source_.size() && (source_[end] == '0' || source_[end] == '_'))
      ++end;
    while (source_[end - 1] == '_')
      --end;
    return end;
  }

  void read_number() {
    const std::size_t point = float_end();
    const std::size_t end = point > at_ ? point : integer_end();
    std::string digits = source_.substr(at_, end - at_);
    std::erase(digits, '_');
    add(point > at_ ? Type::kFloat : Type::kInteger, std::move(digits));
    advance(end - at_);
  }

  void read_string(char quote) {
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote)
      end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail(fmt::format("unexpected char {}", python_quoted({&quote, 1})));
    add(Type::kString, unescaped(std::string_view(source_).substr(at_ + 1, end - at_ - 1)));
    advance(end + 1 - at_);
  }

  std::string unescaped(std::string_view text) const {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\' || i + 1 == text.size()) {
        result += text[i];
        continue;
      }
      unescape(text, ++i, result);
    }
    return result;
  }

  // text[i] follows the backslash; i moves to the escape's last byte.
  void unescape(std::string_view text, std::size_t& i, std::string& result) const {
    static constexpr std::string_view kLetters = "\\'\"abfnrtv";
    static constexpr std::string_view kMeaning = "\\'\"\a\b\f\n\r\t\v";
    const char c = text[i];
    if (const auto known = kLetters.find(c); known != kNowhere) {
      result += kMeaning[known];
    } else if (c == '\n') {
      return;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      append_code_point(result, text, i, c == 'x' ? 2 : c == 'u' ? 4 : 8);
    } else if (c >= '0' && c <= '7') {
      char32_t code = 0;
      std::size_t used = 0;
      while (used < 3 && i + used < text.size() && text[i + used] >= '0' && text[i + used] <= '7') {
        code = code * 8 + static_cast<char32_t>(text[i + used++] - '0');
      }
      i += used - 1;
      append_utf8(result, code);
    } else if (c == 'N') {
      fail("named characters (\\N{...}) are not supported in strings");
    } else {
      result += '\\';
      result += c;
    }
  }

  void append_code_point(std::string& result, std::string_view text, std::size_t& i,
                         std::size_t digits) const {
    char32_t code = 0;
    for (std::size_t k = 1; k <= digits; ++k) {
      if (i + k >= text.size() || !is_digit_of(text[i + k], 16)) {
        fail(fmt::format("truncated \\{} escape in a string", text[i]));
      }
      const int digit = std::tolower(static_cast<unsigned char>(text[i + k]));
      code = code * 16 + static_cast<char32_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
      fail(fmt::format("\\{} escape of a character that does not exist", text[i]));
    }
    i += digits;
    append_utf8(result, code);
  }

  void read_operator() {
    static constexpr std::array<std::string_view, 25> kOperators = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ","};
    for (const std::string_view op : kOperators) {
      if (!looking_at(op)) continue;
      balance(op);
      add(Type::kOperator, std::string(op));
      advance(op.size());
      return;
    }
    std::size_t next = at_;
    next_code_point(source_, next);
    fail(fmt::format("unexpected char {}", python_quoted(source_.substr(at_, next - at_))));
  }

  void balance(std::string_view op) {
    if (op == "(" || op == "[" || op == "{") {
      open_ += op == "(" ? ')' : op == "[" ? ']' : '}';
    } else if (op == ")" || op == "]" || op == "}") {
      if (open_.empty()) fail(fmt::format("unexpected '{}'", op));
      if (open_.back() != op[0]) {
        fail(fmt::format("unexpected '{}', expected '{}'", op, open_.back()));
      }
      open_.pop_back();
    }
  }

  const std::string source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::string open_;  // the brackets still open, innermost last
  std::vector<Token> tokens_;
};

}  // namespace

std::string Token::description() const {
  switch (type) {
    case Type::kData:
      return "template data / text";
    case Type::kBlockBegin:
      return "begin of statement block";
    case Type::kBlockEnd:
      return "end of statement block";
    case Type::kVariableBegin:
      return "begin of print statement";
    case Type::kVariableEnd:
      return "end of print statement";
    case Type::kString:
      return "string";
    case Type::kInteger:
      return "integer";
    case Type::kFloat:
      return "float";
    case Type::kEnd:
      return "end of template";
    case Type::kName:
    case Type::kOperator:
      return text;
  }
  return text;
}

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace antisd::inline text::jinja
