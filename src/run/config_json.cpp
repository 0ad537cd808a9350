#include "run/config_json.h"

#include <toml++/toml.h>

#include "core/check.h"

namespace antisd::inline run {
namespace {

Json json_of(const toml::node& node) {
  if (const toml::table* table = node.as_table()) {
    Json object = Json::object();
    for (const auto& [key, value] : *table)
      object[std::string(key.str())] = json_of(value);
    return object;
  }
  if (const toml::array* list = node.as_array()) {
    Json values = Json::array();
    for (const toml::node& value : *list)
      values.push_back(json_of(value));
    return values;
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return number->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  const auto* flag = node.as_boolean();
  ANTISD_CHECK(flag != nullptr);  // no option has another type
  return flag->get();
}

}  // namespace

Json config_json(const RunConfig& config) {
  const toml::table table = toml::parse(config.options().to_toml(false));
  return json_of(table);
}

}  // namespace antisd::inline run
