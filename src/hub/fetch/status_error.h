// What the hub's refusals mean, in words.
#pragma once

#include <functional>
#include <string>

#include "hub/fetch/http_client.h"
#include "hub/fetch/transfer.h"
#include "hub/repo_name.h"

namespace antisd::inline hub {

// The repository is not there, or is hidden from who asks.
bool is_not_found(const HttpAnswer& response);

// For a request about a repository: InputError for one that is missing, gated or private, a
// revision that is missing, or a refused token; otherwise as throw_status().
[[noreturn]] void throw_repo_status(const HttpAnswer& response, const RepoName& repo,
                                    const std::string& endpoint, bool has_token,
                                    const RetryOptions& retry, const std::function<bool()>& stop);

// For a file: ConnectionError for what may pass (429 and 5xx; after the pause that the server asks
// for), RunError otherwise.
[[noreturn]] void throw_status(const HttpAnswer& response, const std::string& where,
                               const RetryOptions& retry, const std::function<bool()>& stop);

}  // namespace antisd::inline hub
