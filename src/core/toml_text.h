// Values as TOML text that reads back as the same value.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>

namespace antisd::inline core {

std::string toml_value(bool value);
std::string toml_value(std::int64_t value);
std::string toml_value(double value);
std::string toml_value(std::string_view value);  // quoted and escaped
inline std::string toml_value(const std::string& value) {
  return toml_value(std::string_view(value));
}
std::string toml_key(std::string_view key);  // bare where TOML allows it, else quoted

template <typename... Types>
std::string toml_value(const std::variant<Types...>& value) {
  return std::visit([](const auto& v) { return toml_value(v); }, value);
}

template <typename Value>
std::string toml_value(const std::vector<Value>& values) {
  std::string text = "[";
  for (const Value& value : values)
    text += (text.size() > 1 ? ", " : "") + toml_value(value);
  return text + "]";
}

template <typename Value>
std::string toml_value(const std::map<std::string, Value>& table) {
  std::string text = "{";
  for (const auto& [key, value] : table) {
    text += (text.size() > 1 ? ", " : "") + toml_key(key) + " = " + toml_value(value);
  }
  return text + "}";
}

}  // namespace antisd::inline core
