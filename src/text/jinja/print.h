// Values as text: Python's str() and repr(), and json.dumps().
#pragma once

#include <limits>
#include <string>
#include <string_view>

#include "text/jinja/runtime.h"

namespace antisd::inline text::jinja {

inline constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

// repr(); longer results are cut after about `most` bytes.
std::string repr(Runtime& runtime, const Value& value, std::size_t most = kNoLimit);
std::string str(Runtime& runtime, const Value& value);
std::string python_quoted(std::string_view text);  // repr() of a string
std::string float_repr(double number);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool lines = false;  // whether `indent` is used
  std::string indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style);

}  // namespace antisd::inline text::jinja
