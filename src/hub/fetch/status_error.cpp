#include "hub/fetch/status_error.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

namespace antisd::inline hub {
namespace {

constexpr const char* kLogIn = "log in with `hf auth login`, or set HF_TOKEN";

// Seconds; 0 where the server does not say.
double retry_after(const HttpAnswer& response) {
  return std::max(0.0, std::strtod(response.header("retry-after").c_str(), nullptr));
}

bool is_gated(const HttpAnswer& response) {
  return response.header("x-error-code") == "GatedRepo";
}

}  // namespace

bool is_not_found(const HttpAnswer& response) {
  const std::string code = response.header("x-error-code");
  if (is_gated(response) || code == "RevisionNotFound") return false;
  // The hub answers 401 for what does not exist, so that nobody learns what is private.
  return response.status == 404 || response.status == 401;
}

void throw_repo_status(const HttpAnswer& response, const RepoName& repo,
                       const std::string& endpoint, bool has_token, const RetryOptions& retry,
                       const std::function<bool()>& stop) {
  const std::string prefix = repo.type == RepoType::kDataset ? "datasets/" : "";
  const std::string page = fmt::format("{}/{}{}", endpoint, prefix, repo.name);
  if (response.header("x-error-code") == "RevisionNotFound") {
    throw InputError(fmt::format("there is no revision '{}'", repo.revision),
                     {.where = repo.name, .remedy = fmt::format("{}/tree/main lists them", page)});
  }
  if (is_gated(response)) {
    throw InputError(
        has_token ? "access is gated, and this account has not got it" : "access is gated",
        {.where = repo.name,
         .remedy =
             fmt::format("ask for it at {}, then {}", page, has_token ? "fetch again" : kLogIn)});
  }
  if (response.status == 401 && has_token) {
    throw InputError("the hub does not accept the token, or there is no such repository",
                     {.where = repo.name, .remedy = kLogIn});
  }
  if (response.status == 403) {
    throw InputError("the hub forbids access with this token",
                     {.where = repo.name, .remedy = "use a token that may read it"});
  }
  if (is_not_found(response)) {
    throw InputError(
        fmt::format("{} has no such {}, or it is private", endpoint, type_text(repo.type)),
        {.where = repo.name,
         .remedy = fmt::format("check the name{}",
                               has_token ? "" : std::string("; for a private one ") + kLogIn)});
  }
  throw_status(response, repo.name, retry, stop);
}

void throw_status(const HttpAnswer& response, const std::string& where, const RetryOptions& retry,
                  const std::function<bool()>& stop) {
  if (response.status == 429) {
    pause(std::min(retry_after(response), retry.max_wait_s), stop);
    throw ConnectionError(
        "the server asks for fewer requests (429)",
        {.where = where,
         .remedy = fmt::format("wait some minutes; {} for a higher limit", kLogIn)});
  }
  if (response.status >= 500 || response.status == 408) {
    throw ConnectionError(fmt::format("the server cannot answer now ({})", response.status),
                          {.where = where, .remedy = "try again later"});
  }
  if (response.status == 401 || response.status == 403)
    throw RunError(fmt::format("the server refuses the file ({})", response.status),
                   {.where = where, .remedy = kLogIn});
  throw RunError(fmt::format("the server answers with status {}", response.status),
                 {.where = where, .remedy = "check HF_ENDPOINT and the revision"});
}

}  // namespace antisd::inline hub
