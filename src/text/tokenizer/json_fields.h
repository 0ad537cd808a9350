// Typed access to the objects of a tokenizer file, with errors that name file and place.
//
//   const JsonFields fields(value, "tokenizer.json: pre_tokenizer");
//   fields.allow({"type", "behavior", "invert"});       // anything else is an InputError
//   const bool invert = fields.boolean("invert", false);
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"

namespace antisd::inline text {

class JsonFields {
 public:
  JsonFields(const SortedJson& value, std::string where);  // InputError unless it is an object

  void allow(std::initializer_list<std::string_view> keys) const;
  bool has(std::string_view key) const;  // and it is not null
  const SortedJson& get(std::string_view key) const;
  std::string string(std::string_view key) const;
  std::string string(std::string_view key, std::string_view fallback) const;
  std::optional<std::string> optional_string(std::string_view key) const;
  bool boolean(std::string_view key) const;
  bool boolean(std::string_view key, bool fallback) const;
  std::int64_t integer(std::string_view key) const;
  const SortedJson& array(std::string_view key) const;

  const std::string& where() const { return where_; }
  std::string where(std::string_view key) const { return where_ + "." + std::string(key); }
  [[noreturn]] void fail(std::string problem, std::string remedy) const;

 private:
  [[noreturn]] void fail_type(std::string_view key, std::string_view expected) const;

  const SortedJson& value_;
  std::string where_;
};

// The members of a possibly nested `Sequence` in order; `key` holds a sequence's members. Null is
// not a member. Limited in number and depth.
std::vector<std::pair<SortedJson, std::string>> flatten_sequence(const SortedJson& value,
                                                                 std::string_view key,
                                                                 const std::string& where);

}  // namespace antisd::inline text
