// The fields of a request's JSON, each read once with its type and range; what nobody read is
// unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/json.h"

namespace antisd::inline serve {

class RequestFields {
 public:
  // `body` must outlive it. ApiError if it is no object.
  explicit RequestFields(const Json& body);

  // The value, or null where it is absent or JSON's null.
  const Json* find(const std::string& name);
  bool flag(const std::string& name, bool otherwise);
  double number(const std::string& name, double otherwise);
  std::int64_t integer(const std::string& name, std::int64_t otherwise, std::int64_t least,
                       std::int64_t most);
  std::optional<std::string> text(const std::string& name);

  // Fields that are refused unless they have the value that changes nothing.
  void only(const std::string& name, const std::vector<Json>& values, const std::string& remedy);
  void ignore(const std::vector<std::string>& names);
  // ApiError for a field that none of the calls above named.
  void refuse_others() const;

 private:
  const Json& body_;
  std::vector<std::string> known_;
};

}  // namespace antisd::inline serve
