#include "text/tokenizer/json_fields.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"

namespace antisd::inline text {
namespace {

constexpr std::size_t kMaxSteps = 64;

void flatten_into(const SortedJson& value, std::string_view key, const std::string& where,
                  std::vector<std::pair<SortedJson, std::string>>& members) {
  if (value.is_null()) return;
  const JsonFields fields(value, where);
  if (fields.string("type") != "Sequence") {
    if (members.size() == kMaxSteps) {
      fields.fail(fmt::format("a sequence of more than {} steps", kMaxSteps), "use fewer steps");
    }
    members.emplace_back(value, where);
    return;
  }
  fields.allow({"type", key});
  std::size_t index = 0;
  for (const SortedJson& member : fields.array(key)) {
    flatten_into(member, key, fmt::format("{}.{}[{}]", where, key, index++), members);
  }
}

}  // namespace

JsonFields::JsonFields(const SortedJson& value, std::string where)
    : value_(value), where_(std::move(where)) {
  if (!value.is_object()) {
    fail(fmt::format("expected an object, found {}", value.type_name()), "fix the file");
  }
}

void JsonFields::fail(std::string problem, std::string remedy) const {
  throw InputError(std::move(problem), {where_, std::move(remedy)});
}

void JsonFields::fail_type(std::string_view key, std::string_view expected) const {
  const auto found = value_.find(key);
  if (found == value_.end()) {
    fail(fmt::format("\"{}\" is missing", key), fmt::format("add it: {}", expected));
  }
  fail(fmt::format("\"{}\" is {} where {} belongs", key, found->type_name(), expected),
       "fix the file");
}

void JsonFields::allow(std::initializer_list<std::string_view> keys) const {
  for (const auto& item : value_.items()) {
    if (std::find(keys.begin(), keys.end(), item.key()) == keys.end()) {
      fail(fmt::format("the option \"{}\" is not supported", item.key()),
           "remove it, or use a tokenizer of a supported kind");
    }
  }
}

bool JsonFields::has(std::string_view key) const {
  const auto found = value_.find(key);
  return found != value_.end() && !found->is_null();
}

const SortedJson& JsonFields::get(std::string_view key) const {
  static const SortedJson null;
  const auto found = value_.find(key);
  return found == value_.end() ? null : *found;
}

std::string JsonFields::string(std::string_view key) const {
  if (!get(key).is_string()) fail_type(key, "a string");
  return get(key).get<std::string>();
}

std::string JsonFields::string(std::string_view key, std::string_view fallback) const {
  return has(key) ? string(key) : std::string(fallback);
}

std::optional<std::string> JsonFields::optional_string(std::string_view key) const {
  if (!has(key)) return std::nullopt;
  return string(key);
}

bool JsonFields::boolean(std::string_view key) const {
  if (!get(key).is_boolean()) fail_type(key, "true or false");
  return get(key).get<bool>();
}

bool JsonFields::boolean(std::string_view key, bool fallback) const {
  return has(key) ? boolean(key) : fallback;
}

std::int64_t JsonFields::integer(std::string_view key) const {
  const SortedJson& value = get(key);
  if (!value.is_number_integer()) fail_type(key, "a whole number");
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) {
    fail(fmt::format("\"{}\" is {}", key, value.get<std::uint64_t>()), "use a smaller number");
  }
  return value.get<std::int64_t>();
}

const SortedJson& JsonFields::array(std::string_view key) const {
  if (!get(key).is_array()) fail_type(key, "a list");
  return get(key);
}

std::vector<std::pair<SortedJson, std::string>> flatten_sequence(const SortedJson& value,
                                                                 std::string_view key,
                                                                 const std::string& where) {
  std::vector<std::pair<SortedJson, std::string>> members;
  flatten_into(value, key, where, members);
  return members;
}

}  // namespace antisd::inline text
