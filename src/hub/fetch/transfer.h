// One file from the hub into its blob: resumed where an earlier attempt ended, tried again when the
// connection breaks, and kept only if its hash is right.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "hub/fetch/http_client.h"
#include "hub/fetch/repo_folder.h"

namespace antisd::inline hub {

struct RetryOptions {
  int attempts = 5;        // in a row without a new byte
  double backoff_s = 1;    // before the second attempt; doubles each time
  double max_wait_s = 60;  // also for what a server asks for (Retry-After)
};

// What is known about a file before it is fetched.
struct FileMetadata {
  std::string path;  // for messages
  std::string url;
  std::string etag;        // SHA-256 of a large file, git's hash of a small one
  std::int64_t size = -1;  // -1: not known
};

class PartialFile;

struct FileTransfer {
  HttpClient& client;
  const RepoFolder& folder;
  RetryOptions retry;
  std::function<bool()> stop;
  std::function<void(std::int64_t bytes)> progress;     // of the file, so far
  std::function<void(const std::string& text)> report;  // what is tried again, and why

  // The lock is the caller's. WriteError, ConnectionError after the last attempt, RunError for a
  // wrong hash or status, FetchStopped; in all but a wrong hash the part that is there stays.
  void run(const FileMetadata& file) const;

 private:
  void complete(const FileMetadata& file, PartialFile& part) const;
};

// Calls `action` until it does not throw a ConnectionError, with pauses.
void with_retries(const RetryOptions& retry, const std::function<bool()>& stop,
                  const std::function<void(const std::string&)>& report,
                  const std::function<void()>& action);
// Sleeps, and throws FetchStopped as soon as `stop` says so.
void pause(double seconds, const std::function<bool()>& stop);

}  // namespace antisd::inline hub
