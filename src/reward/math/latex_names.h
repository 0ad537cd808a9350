// The meaning of names and characters in answers for the lexer: LaTeX commands, words of plain text
// and Python, and the Unicode characters that stand for them.
#pragma once

#include <string_view>

namespace antisd::inline reward::math {

enum class NameClass {
  kUnknown,
  kDrop,      // layout without meaning
  kText,      // its group is text: \text{...}
  kSymbol,    // value: name of the symbol
  kCommand,   // value: name of a function or construction
  kRelation,  // value: one character of namespace relation
  kOperator,  // value: as TokenKind::kOperator
  kOpen,      // value: as TokenKind::kOpen
  kClose,
  kComma,
  kFraction,  // value: "1/2"
  kDigit,     // value: a superscript digit
};

struct Name {
  NameClass kind = NameClass::kUnknown;
  std::string_view value;
};

Name find_command(std::string_view name);         // without the backslash
Name find_word(std::string_view name);            // two letters or more, outside LaTeX commands
Name find_character(char32_t code_point);         // above U+007F
bool is_known_unit(std::string_view lower_case);  // "cm", "dollars", ...

// The unit's canonical name and its size in units of the same kind: "km" -> {"m", 1000}. An empty
// name if the unit is not in the table.
struct Unit {
  std::string_view base;
  double scale = 1;
};
Unit find_unit(std::string_view lower_case);

}  // namespace antisd::inline reward::math
