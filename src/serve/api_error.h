// What a client gets in place of an answer, in the form of OpenAI's interface: an object "error"
// with the message, its type, and the parameter and code or null.
#pragma once

#include <stdexcept>
#include <string>

#include "io/http/response.h"
#include "io/json.h"

namespace antisd::inline serve {

// An HTTP status, and the parameter and code where there is one.
class ApiError : public std::runtime_error {
 public:
  ApiError(int status, const std::string& message, std::string param = "", std::string code = "")
      : std::runtime_error(message),
        status_(status),
        param_(std::move(param)),
        code_(std::move(code)) {}

  int status() const { return status_; }
  Json json() const;
  HttpResponse response() const;

 private:
  int status_;
  std::string param_, code_;
};

}  // namespace antisd::inline serve
