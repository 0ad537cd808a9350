#include "serve/request_fields.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/nearest.h"
#include "serve/api_error.h"

namespace antisd::inline serve {
namespace {

[[noreturn]] void refuse_type(const std::string& name, const Json& value, const char* wanted) {
  throw ApiError(400, fmt::format("'{}' is {}; give {}", name, value.type_name(), wanted), name);
}

}  // namespace

RequestFields::RequestFields(const Json& body) : body_(body) {
  if (!body.is_object()) throw ApiError(400, "the body is no JSON object");
}

const Json* RequestFields::find(const std::string& name) {
  known_.push_back(name);
  const auto found = body_.find(name);
  return found == body_.end() || found->is_null() ? nullptr : &*found;
}

bool RequestFields::flag(const std::string& name, bool otherwise) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) refuse_type(name, *value, "true or false");
  return value->get<bool>();
}

double RequestFields::number(const std::string& name, double otherwise) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_number()) refuse_type(name, *value, "a number");
  return value->get<double>();
}

std::int64_t RequestFields::integer(const std::string& name, std::int64_t otherwise,
                                    std::int64_t least, std::int64_t most) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_number_integer()) refuse_type(name, *value, "a whole number");
  const bool is_large =
      value->is_number_unsigned() && value->get<std::uint64_t>() > static_cast<std::uint64_t>(most);
  if (is_large || value->get<std::int64_t>() < least || value->get<std::int64_t>() > most) {
    throw ApiError(400, fmt::format("'{}' is {}; give {} to {}", name, value->dump(), least, most),
                   name);
  }
  return value->get<std::int64_t>();
}

std::optional<std::string> RequestFields::text(const std::string& name) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse_type(name, *value, "a string");
  return value->get<std::string>();
}

void RequestFields::only(const std::string& name, const std::vector<Json>& values,
                         const std::string& remedy) {
  const Json* value = find(name);
  if (value == nullptr || std::find(values.begin(), values.end(), *value) != values.end()) return;
  throw ApiError(400, fmt::format("'{}' is not supported; {}", name, remedy), name,
                 "unsupported_parameter");
}

void RequestFields::ignore(const std::vector<std::string>& names) {
  known_.insert(known_.end(), names.begin(), names.end());
}

void RequestFields::refuse_others() const {
  for (const auto& [name, value] : body_.items()) {
    if (value.is_null() || std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    const std::string nearest = nearest_name(name, known_);
    throw ApiError(400,
                   fmt::format("unknown parameter '{}'{}", name,
                               nearest.empty() ? "; leave it out"
                                               : fmt::format("; did you mean '{}'?", nearest)),
                   name, "unknown_parameter");
  }
}

}  // namespace antisd::inline serve
