#include "reward/math/latex_lexer.h"

#include <algorithm>

#include "core/utf8.h"
#include "reward/math/characters.h"
#include "reward/math/expression.h"
#include "reward/math/latex_digits.h"
#include "reward/math/latex_names.h"

namespace antisd::inline reward::math {
namespace {

class Lexer {
 public:
  Lexer(std::string_view text, const LexerOptions& options) : text_(text), options_(options) {
    std::string_view value = text.substr(text.rfind('=') + 1);  // all of it if there is none
    while (!value.empty() && value.front() == ' ')
      value.remove_prefix(1);
    value_size_ = value.size();
  }

  std::vector<Token> run() {
    scan(text_, /*in_text=*/false, /*depth=*/0);
    tokens_.push_back({TokenKind::kEnd, "", true});
    return std::move(tokens_);
  }

 private:
  void emit(TokenKind kind, std::string_view text) {
    tokens_.push_back({kind, std::string(text), space_});
    space_ = false;
  }

  void emit_name(const Name& name) {
    switch (name.kind) {
      case NameClass::kSymbol:
        return emit(TokenKind::kSymbol, name.value);
      case NameClass::kCommand:
        return emit(TokenKind::kCommand, name.value);
      case NameClass::kRelation:
        return emit_relation(name.value);
      case NameClass::kOperator:
        return emit(TokenKind::kOperator, name.value);
      case NameClass::kOpen:
        return emit(TokenKind::kOpen, name.value);
      case NameClass::kClose:
        return emit(TokenKind::kClose, name.value);
      case NameClass::kComma:
        return emit_comma(name.value);
      case NameClass::kFraction:
        return emit(TokenKind::kFraction, name.value);
      default:
        return;
    }
  }

  // "
  // ot =" and "
  // ot \in" are read as two relations; "1, and 2" as two commas.
  void emit_relation(std::string_view value) {
    if (!tokens_.empty() && tokens_.back().kind == TokenKind::kRelation) {
      Token& last = tokens_.back();
      if (last.text == "n") return;
      if (value == "=" && (last.text == "<" || last.text == ">"))
        last.text.assign(1, last.text == "<" ? relation::kAtMost : relation::kAtLeast);
      return;
    }
    emit(TokenKind::kRelation, value);
  }

  void emit_comma(std::string_view value) {
    if (tokens_.empty()) return;
    if (tokens_.back().kind == TokenKind::kComma) {
      if (value == "or") tokens_.back().text.assign(value);  // "1, or 2" is an alternative
      return;
    }
    emit(TokenKind::kComma, value);
  }

  bool after_quantity() const {
    if (tokens_.empty()) return false;
    const Token& last = tokens_.back();
    if (last.text == "/" && tokens_.size() > 1)
      return tokens_[tokens_.size() - 2].kind == TokenKind::kWord;
    return last.kind == TokenKind::kNumber || last.kind == TokenKind::kFraction ||
           last.kind == TokenKind::kClose || last.kind == TokenKind::kSymbol ||
           last.kind == TokenKind::kWord;
  }

  void scan(std::string_view text, bool in_text, int depth) {
    if (depth > 20) throw BudgetExceeded("text is nested too deeply");
    std::size_t at = 0;
    while (at < text.size()) {
      const char c = text[at];
      if (c == '\\') {
        at = scan_command(text, at + 1, in_text, depth);
      } else if (const std::size_t end = based_digits_end(text, at); end != at) {
        emit(TokenKind::kNumber, text.substr(at, end - at));
        at = end;
      } else if (is_digit(c) || (c == '.' && at + 1 < text.size() && is_digit(text[at + 1]))) {
        at = scan_number(text, at);
      } else if (is_letter(c)) {
        at = scan_letters(text, at, in_text);
      } else if (static_cast<unsigned char>(c) >= 0x80) {
        at = scan_unicode(text, at);
      } else {
        at = scan_punctuation(text, at);
      }
    }
  }

  // The end of digits that include letters, before their base, 1A3_{16} or FF_{16}; `at` if there
  // are none. A digit among them, or the base 16, distinguishes them from names like AB_{12}.
  static std::size_t based_digits_end(std::string_view text, std::size_t at) {
    if (at > 0 && (is_letter(text[at - 1]) || is_digit(text[at - 1]))) return at;
    std::size_t end = at, letters = 0;
    char largest = 'A';
    for (; end < text.size() && (is_digit(text[end]) || (text[end] >= 'A' && text[end] <= 'Z'));
         ++end)
      if (!is_digit(text[end])) {
        ++letters;
        largest = std::max(largest, text[end]);
      }
    if (letters == 0 || end < at + 2 || end >= text.size() || text[end] != '_') return at;
    std::size_t digit = end + 1;
    while (digit < text.size() && (text[digit] == '{' || text[digit] == '('))
      ++digit;
    int base = 0;
    for (std::size_t k = digit; k < text.size() && k < digit + 2 && is_digit(text[k]); ++k)
      base = 10 * base + (text[k] - '0');
    if (largest - 'A' + 10 >= base || base > 36) return at;
    return letters < end - at || base == 16 ? end : at;
  }

  std::size_t scan_unicode(std::string_view text, std::size_t at) {
    const std::size_t start = at;
    const Name name = find_character(next_code_point(text, at));
    if (name.kind == NameClass::kDigit) {
      // A run of superscript digits is one exponent.
      std::string digits(name.value);
      while (at < text.size()) {
        std::size_t next = at;
        const Name more = find_character(next_code_point(text, next));
        if (more.kind != NameClass::kDigit) break;
        digits += more.value;
        at = next;
      }
      emit(TokenKind::kOperator, "^");
      emit(TokenKind::kOpen, "{");
      scan(digits, false, 1);
      emit(TokenKind::kClose, "}");
    } else if (name.kind == NameClass::kDrop) {
      space_ = true;
    } else if (name.kind == NameClass::kUnknown) {
      emit(TokenKind::kSymbol, text.substr(start, at - start));
    } else {
      emit_name(name);
    }
    return at;
  }

  std::size_t scan_punctuation(std::string_view text, std::size_t at) {
    const char c = text[at];
    const char next = at + 1 < text.size() ? text[at + 1] : '\0';
    switch (c) {
      case '(':
      case '[':
      case '{':
        emit(TokenKind::kOpen, text.substr(at, 1));
        return at + 1;
      case ')':
      case ']':
      case '}':
        emit(TokenKind::kClose, text.substr(at, 1));
        return at + 1;
      case ',':
      case ';':
        emit_comma(text.substr(at, 1));
        return at + 1;
      case '=':
        emit_relation("=");
        return at + (next == '=' ? 2 : 1);
      case '<':
      case '>':
        emit_relation(text.substr(at, 1));
        return at + 1;
      case '*':
        emit(TokenKind::kOperator, next == '*' ? "^" : "*");
        return at + (next == '*' ? 2 : 1);
      case '!':
        if (next == '=') {
          emit_relation("n");
          return at + 2;
        }
        emit(TokenKind::kOperator, "!");
        return at + 1;
      case '+':
      case '-':
      case '/':
      case '^':
      case '_':
      case '%':
      case '\'':
      case '|':
      case '&':
        emit(TokenKind::kOperator, text.substr(at, 1));
        return at + 1;
      case ':':
        if (next != '=') emit(TokenKind::kOperator, ":");
        return at + 1;
      case '.':  // "1, 2, ..."
        if (text.substr(at, 3) == "..." && !tokens_.empty() &&
            tokens_.back().kind == TokenKind::kComma) {
          emit(TokenKind::kSymbol, "dots");
          return at + 3;
        }
        space_ = true;
        return at + 1;
      case '\0':
      case '?':
      case '"':
      case '`':
      case '#':
      case '@':
      default:
        space_ = true;  // blanks, $, ~ and stray punctuation
        return at + 1;
    }
  }

  // `at` is after the backslash.
  std::size_t scan_command(std::string_view text, std::size_t at, bool in_text, int depth) {
    std::size_t end = at;
    while (end < text.size() && is_letter(text[end]))
      ++end;
    if (end == at) end = std::min(at + 1, text.size());
    const std::string_view name = text.substr(at, end - at);
    if (name.empty() || name == " " || name == "\n") {
      space_ = true;
      return end;
    }
    if (end < text.size() && text[end] == '*') ++end;  // \operatorname*
    if (name == "right") {
      std::size_t after = end;
      while (after < text.size() && text[after] == ' ')
        ++after;
      if (after < text.size() && text[after] == '.') {
        emit(TokenKind::kClose, ".");
        return after + 1;
      }
      return end;
    }
    if (name == "mathbb" || name == "Bbb") return scan_blackboard(text, end);
    if (name == "hspace" || name == "vspace" || name == "phantom" || name == "color" ||
        name == "textcolor")
      return skip_group(text, end);
    const Name known = find_command(name);
    if (known.kind == NameClass::kText) return scan_text_group(text, end, name, in_text, depth);
    if (known.kind == NameClass::kDrop) {
      // A space separates; \left and the font commands do not.
      if (name.size() == 1 || name == "quad" || name == "qquad") space_ = true;
      return end;
    }
    if (known.kind == NameClass::kUnknown) {
      emit(TokenKind::kSymbol, name);
      return end;
    }
    emit_name(known);
    if (name == "\\") return skip_row_gap(text, end);
    return end;
  }

  static std::size_t skip_row_gap(std::string_view text, std::size_t at) {
    if (at >= text.size() || text[at] != '[') return at;
    const std::size_t close = text.find(']', at);
    if (close == std::string_view::npos || close - at > 8) return at;
    const std::string_view gap = text.substr(at, close - at);
    const bool length = gap.find("pt") != gap.npos || gap.find("ex") != gap.npos ||
                        gap.find("em") != gap.npos || gap.find("mm") != gap.npos;
    return length ? close + 1 : at;
  }

  static std::size_t skip_group(std::string_view text, std::size_t at) {
    if (at >= text.size() || text[at] != '{') return at;
    const std::size_t end = std::min(group_end(text, at), text.size());
    return std::min(end + 1, text.size());
  }

  std::size_t scan_blackboard(std::string_view text, std::size_t at) {
    while (at < text.size() && (text[at] == '{' || text[at] == ' '))
      ++at;
    if (at >= text.size()) return at;
    switch (text[at]) {
      case 'R':
        emit(TokenKind::kSymbol, "Reals");
        break;
      case 'Z':
        emit(TokenKind::kSymbol, "Integers");
        break;
      case 'N':
        emit(TokenKind::kSymbol, "Naturals");
        break;
      case 'Q':
        emit(TokenKind::kSymbol, "Rationals");
        break;
      case 'C':
        emit(TokenKind::kSymbol, "Complexes");
        break;
      default:
        emit(TokenKind::kSymbol, text.substr(at, 1));
    }
    ++at;
    if (at < text.size() && text[at] == '}') ++at;
    return at;
  }

  // 5\text{ (since it is prime)}: words in brackets after a value.
  static bool is_remark(std::string_view content) {
    const std::size_t first = content.find_first_not_of(' ');
    return first != content.npos && content[first] == '(' &&
           (content.find(' ', first) != content.npos || content.size() - first >= 6) &&
           content.back() == ')';
  }

  std::size_t scan_text_group(std::string_view text, std::size_t at, std::string_view command,
                              bool in_text, int depth) {
    while (at < text.size() && text[at] == ' ')
      ++at;
    if (at >= text.size() || text[at] != '{') return at;
    const std::size_t end = std::min(group_end(text, at), text.size());
    const std::string_view content = text.substr(at + 1, end - at - 1);
    // \mathrm{e}, \mathrm{i}, \mathrm{d} are mathematics; \text{m} after a number is a unit.
    const bool upright = command == "mathrm" || command == "operatorname" || command == "mathop";
    const bool letter = content.size() == 1 && is_letter(content[0]);
    if (after_quantity() && is_remark(content)) return std::min(end + 1, text.size());
    const std::string based =
        std::string(content) + std::string(text.substr(std::min(end + 1, text.size()), 8));
    if (based_digits_end(based, 0) == content.size() && !content.empty()) {  // \text{A5}_{11}
      emit(TokenKind::kNumber, content);
    } else if (letter && upright && (content == "e" || content == "i" || content == "d")) {
      emit(TokenKind::kSymbol, content);
    } else {
      if (!content.empty() && content[0] == ' ') space_ = true;
      scan(content, !letter || after_quantity() || in_text, depth + 1);
    }
    return std::min(end + 1, text.size());
  }

  std::size_t scan_letters(std::string_view text, std::size_t at, bool in_text) {
    std::size_t end = at;
    while (end < text.size() && is_letter(text[end]))
      ++end;
    std::string_view run = text.substr(at, end - at);
    if (end < text.size() && text[end] == '.' &&
        (run == "np" || run == "math" || run == "sympy" || run == "numpy" || run == "sp"))
      return end + 1;
    if (end < text.size() && run == "log" && (text.substr(end, 2) == "10" || text[end] == '2')) {
      const std::size_t digits = text[end] == '2' ? 1 : 2;
      if (text.substr(end + digits, 1) == "(") {
        emit(TokenKind::kCommand, digits == 1 ? "lb" : "lg");
        return end + digits;
      }
    }
    if (run.size() == 1 && text.substr(end, 3) == ".m." && after_quantity()) {  // 5 p.m.
      emit(TokenKind::kWord, lower(run) + "m");
      return end + 3;
    }
    const bool glued = at > 0 && is_digit(text[at - 1]);
    if (glued && (run == "th" || run == "st" || run == "nd" || run == "rd")) return end;  // 4th
    if (run.size() == 1) {
      // After a number, m² and m³ are units; in algebra they would be m^2.
      const std::string_view behind = text.substr(end, 2);
      const bool area = run == "m" && (behind == "²" || behind == "³");
      const bool unit = (in_text || area) && after_quantity();
      emit(unit ? TokenKind::kWord : TokenKind::kSymbol, unit ? lower(run) : std::string(run));
      return end;
    }
    const Name known = find_word(run);
    if (known.kind != NameClass::kUnknown) {
      emit_name(known);
      return end;
    }
    // "twenty-five" is one word, unlike x-y.
    if (run.size() >= 5 && run.ends_with("ty") && text.substr(end, 1) == "-") {
      std::size_t next = end + 1;
      while (next < text.size() && is_letter(text[next]))
        ++next;
      if (next >= end + 4) {
        emit(TokenKind::kWord, lower(text.substr(at, next - at)));
        return next;
      }
    }
    emit_run(run, in_text);
    return end;
  }

  // Unknown letters: text, a unit, or a product of variables.
  void emit_run(std::string_view run, bool in_text) {
    const std::string small = lower(run);
    const bool upper_case =
        run.size() <= 4 && small != run && lower(run.substr(1)) != run.substr(1);
    const bool unit = is_known_unit(small) && after_quantity();
    const bool word = unit || run.size() >= 4 || (in_text && !upper_case);
    if (word && !(upper_case && run.size() <= 4 && !unit)) {
      emit(TokenKind::kWord, small);
      return;
    }
    for (const std::string_view function : {"sin", "cos", "tan", "ln", "log"})
      if (run.size() == function.size() + 1 && run.starts_with(function)) {  // "sinx"
        emit(TokenKind::kCommand, function);
        run.remove_prefix(function.size());
      }
    for (std::size_t k = 0; k < run.size(); ++k)
      emit(TokenKind::kSymbol, run.substr(k, 1));
  }

  std::size_t scan_number(std::string_view text, std::size_t at) {
    const ScannedNumber number = scan_number_text(text, at, options_.group_digits, value_size_);
    emit(TokenKind::kNumber, number.digits);
    return number.end;
  }

  std::string_view text_;
  std::size_t value_size_;  // of the text after the last "="
  LexerOptions options_;
  std::vector<Token> tokens_;
  bool space_ = false;
};

}  // namespace

std::vector<Token> lex(std::string_view text, const LexerOptions& options) {
  if (text.size() > kMaxAnswerBytes) throw BudgetExceeded("the answer is too long to parse");
  return Lexer(text, options).run();
}

}  // namespace antisd::inline reward::math
