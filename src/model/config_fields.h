// Typed fields of config.json, with errors (InputError) that name the file and the field. A null
// counts as absent.
//
//   const ConfigFields fields(config, "Qwen3-8B/config.json");
//   shape.hidden = fields.positive("hidden_size");
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "io/json.h"

namespace antisd::inline model {

class ConfigFields {
 public:
  ConfigFields(const Json& config, std::string where) : config_(config), where_(std::move(where)) {}

  const Json* find(const std::string& name) const;  // null: absent
  std::int64_t integer(const std::string& name, std::optional<std::int64_t> fallback = {}) const;
  std::int64_t positive(const std::string& name, std::optional<std::int64_t> fallback = {}) const;
  double number(const std::string& name, double fallback) const;
  bool boolean(const std::string& name, bool fallback) const;
  // The only supported value of this field is `value`.
  void must_be(const std::string& name, const Json& value) const;
  [[noreturn]] void wrong(const std::string& name, const Json& value,
                          const std::string& wanted) const;

  const std::string& where() const { return where_; }

 private:
  const Json& config_;
  std::string where_;
};

}  // namespace antisd::inline model
