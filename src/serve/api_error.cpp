#include "serve/api_error.h"

namespace antisd::inline serve {
namespace {

const char* type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return "service_unavailable_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

}  // namespace

Json ApiError::json() const {
  return {{"error",
           {{"message", what()},
            {"type", type_of(status_)},
            {"param", param_.empty() ? Json() : Json(param_)},
            {"code", code_.empty() ? Json() : Json(code_)}}}};
}

HttpResponse ApiError::response() const {
  HttpResponse response{
      .status = status_, .type = "application/json", .body = to_json_line(json())};
  if (status_ == 401) response.fields.emplace_back("WWW-Authenticate", "Bearer");
  if (status_ == 429 || status_ == 503) response.fields.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace antisd::inline serve
