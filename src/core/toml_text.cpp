#include "core/toml_text.h"

#include <algorithm>
#include <cctype>

namespace antisd::inline core {

std::string toml_value(bool value) {
  return value ? "true" : "false";
}

std::string toml_value(std::int64_t value) {
  return fmt::format("{}", value);
}

std::string toml_value(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text =
      fmt::format("{}", value);  // the shortest text that reads back to the same double
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string toml_value(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    switch (c) {
      case '"':
        text += "\\\"";
        break;
      case '\\':
        text += "\\\\";
        break;
      case '\n':
        text += "\\n";
        break;
      case '\r':
        text += "\\r";
        break;
      case '\t':
        text += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
          text += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
        } else {
          text += c;
        }
    }
  }
  return text + "\"";
}

std::string toml_key(std::string_view key) {
  const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-';
  });
  return bare ? std::string(key) : toml_value(key);
}

}  // namespace antisd::inline core
