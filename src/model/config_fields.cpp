#include "model/config_fields.h"

#include <fmt/format.h>

#include "core/error.h"

namespace antisd::inline model {

const Json* ConfigFields::find(const std::string& name) const {
  const auto field = config_.find(name);
  return field == config_.end() || field->is_null() ? nullptr : &*field;
}

std::int64_t ConfigFields::integer(const std::string& name,
                                   std::optional<std::int64_t> fallback) const {
  const Json* field = find(name);
  if (field == nullptr) {
    if (fallback) return *fallback;
    throw InputError(
        fmt::format("the field '{}' is missing", name),
        {.where = where_, .remedy = "use the config.json that belongs to the weights"});
  }
  if (!field->is_number_integer() || *field < 0 || *field > (std::int64_t{1} << 40))
    wrong(name, *field, "a count");
  return field->get<std::int64_t>();
}

std::int64_t ConfigFields::positive(const std::string& name,
                                    std::optional<std::int64_t> fallback) const {
  const std::int64_t value = integer(name, fallback);
  if (value == 0) wrong(name, Json(value), "at least 1");
  return value;
}

double ConfigFields::number(const std::string& name, double fallback) const {
  const Json* field = find(name);
  if (field == nullptr) return fallback;
  if (!field->is_number()) wrong(name, *field, "a number");
  return field->get<double>();
}

bool ConfigFields::boolean(const std::string& name, bool fallback) const {
  const Json* field = find(name);
  if (field == nullptr) return fallback;
  if (!field->is_boolean()) wrong(name, *field, "true or false");
  return field->get<bool>();
}

void ConfigFields::must_be(const std::string& name, const Json& value) const {
  const Json* field = find(name);
  if (field != nullptr && *field != value)
    wrong(name, *field, value.dump() + " (the only value understood)");
}

void ConfigFields::wrong(const std::string& name, const Json& value,
                         const std::string& wanted) const {
  throw InputError(fmt::format("'{}' is {}", name, value.dump()),
                   {.where = where_, .remedy = "it must be " + wanted});
}

}  // namespace antisd::inline model
