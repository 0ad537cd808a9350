#include "io/json.h"

#include <array>
#include <limits>

#include <fmt/format.h>

#include "core/error.h"

namespace antisd::inline io {
namespace {

// nlohmann's parser is not recursive, but its printer and ours are, and inserting into an ordered
// object is linear in its keys. So depth and keys are limited before a tree is built.
void check_limits(std::string_view text, int max_keys, const std::string& where) {
  std::array<int, kMaxJsonDepth + 1> keys{};
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
      continue;
    }
    if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxJsonDepth) {
        throw InputError(fmt::format("JSON nested deeper than {} levels", kMaxJsonDepth),
                         {.where = where, .remedy = "flatten the value"});
      }
      keys[depth] = 0;
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    } else if (c == ':' && ++keys[depth] > max_keys) {
      throw InputError(fmt::format("a JSON object with more than {} keys", max_keys),
                       {.where = where, .remedy = "split it, or use a list"});
    }
  }
}

template <typename Value>
Value parse_value(std::string_view text, int max_keys, const std::string& where) {
  check_limits(text, max_keys, where);
  try {
    return Value::parse(text.begin(), text.end());
  } catch (const nlohmann::json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: ..." -> what follows the
    // id
    std::string detail = error.what();
    if (const auto end = detail.find("] "); end != std::string::npos) detail.erase(0, end + 2);
    throw InputError("not valid JSON: " + detail,
                     {.where = where, .remedy = "write one JSON value in UTF-8"});
  }
}

}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  return parse_value<Json>(text, kMaxOrderedKeys, where);
}

SortedJson parse_sorted_json(std::string_view text, const std::string& where) {
  return parse_value<SortedJson>(text, std::numeric_limits<int>::max(), where);
}

std::string to_json_line(const Json& value) {
  std::string line = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  // Unicode's other line separators are legal in JSON strings, but many readers split lines at
  // them.
  for (const auto& [raw, escaped] : {std::pair{"\xC2\x85", "\\u0085"},
                                     {"\xE2\x80\xA8", "\\u2028"},
                                     {"\xE2\x80\xA9", "\\u2029"}}) {
    for (std::size_t at = 0; (at = line.find(raw, at)) != std::string::npos;) {
      line.replace(at, std::string_view(raw).size(), escaped);
    }
  }
  return line;
}

}  // namespace antisd::inline io
