// `antisd fetch`: a model or data set of the hub into the local Hugging Face cache, so that it is
// found by its name, here and by huggingface_hub.
//
//   const FetchSettings settings = fetch_settings("antisd/0.1.0");   // from the environment
//   const FetchResult got = fetch(settings, {.name = "openai/gsm8k"}, watch);
//   got.snapshot.folder;
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "hub/cache.h"
#include "hub/fetch/repo_listing.h"
#include "hub/fetch/transfer.h"

namespace antisd::inline hub {

struct FetchSettings {
  std::string endpoint;         // HF_ENDPOINT; no slash at its end
  std::string token;            // HF_TOKEN, or the file that HF_TOKEN_PATH names, or HF_HOME/token
  std::filesystem::path cache;  // cache_folder()
  bool offline = false;         // HF_HUB_OFFLINE
  std::string user_agent;
  std::int64_t silence_s = 30;  // HF_HUB_DOWNLOAD_TIMEOUT
  RetryOptions retry = {};
};

// InputError for a variable that cannot be used.
FetchSettings fetch_settings(const std::string& user_agent);

struct FetchRequest {
  std::string name, revision;         // revision: empty is main
  std::optional<RepoType> type = {};  // nothing: a model if there is one, else a data set
  FilePatterns patterns = {};  // include empty: all of a data set, model_patterns() of a model
};

// How the caller follows it; each may be empty.
struct FetchWatch {
  std::function<bool()> stop;
  std::function<void(const std::string&)> report;                       // a line for the user
  std::function<void(std::int64_t done, std::int64_t total)> progress;  // bytes of what is missing
};

struct FetchResult {
  Snapshot snapshot;
  std::int64_t files = 0;    // of the request
  std::int64_t fetched = 0;  // of them, the ones that were not there
  std::int64_t fetched_bytes = 0;
};

// Until the last file is there the revision's name (refs/) stays as it was, so an interrupted fetch
// is never taken for a whole model. InputError, RunError, FetchStopped.
FetchResult fetch(const FetchSettings& settings, const FetchRequest& request,
                  const FetchWatch& watch);

}  // namespace antisd::inline hub
