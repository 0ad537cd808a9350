// A template's source -> tokens, without the white space that the tags remove: `-` beside a tag,
// the newline after a block (trim_blocks), the indentation before one (lstrip_blocks), and one
// newline at the end of the source.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace antisd::inline text::jinja {

struct Token {
  enum class Type {
    kData,
    kBlockBegin,
    kBlockEnd,
    kVariableBegin,
    kVariableEnd,
    kName,
    kString,    // text is the value, escapes resolved
    kInteger,   // text has no underscores
    kFloat,     // likewise
    kOperator,  // text is the operator
    kEnd,
  };
  Type type;
  std::string text;
  int line;

  bool is(std::string_view op) const { return type == Type::kOperator && text == op; }
  bool is_name(std::string_view name) const { return type == Type::kName && text == name; }
  std::string description() const;  // for messages
};

std::vector<Token> tokenize(std::string_view source);

}  // namespace antisd::inline text::jinja
