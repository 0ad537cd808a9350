// JSON text -> values, with limits against hostile input and errors with their place.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace antisd::inline io {

// Keeps the order of keys, as Python does: rows are written as they were read. A look-up is linear
// in the number of keys; objects with thousands of keys (vocabularies, weight maps) use SortedJson.
using Json = nlohmann::ordered_json;
using SortedJson = nlohmann::json;

inline constexpr int kMaxJsonDepth = 200;
inline constexpr int kMaxOrderedKeys = 10'000;  // per object

// Throws InputError with `where` (file or file:line) for anything but one JSON value in UTF-8.
Json parse_json(std::string_view text, const std::string& where);
SortedJson parse_sorted_json(std::string_view text, const std::string& where);

// One line of JSON in UTF-8 without any line separator, Unicode's included; ill-formed bytes in
// strings become U+FFFD.
std::string to_json_line(const Json& value);

}  // namespace antisd::inline io
