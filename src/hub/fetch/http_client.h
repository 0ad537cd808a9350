// HTTP requests to the hub and to the hosts that it sends us to, with libcurl.
//
//   HttpClient client({.endpoint = "https://huggingface.co", .token = token}, stop);
//   const HttpAnswer answer = client.get(url);
//   if (answer.status == 200) use(answer.body);
//
// The token goes to the endpoint's scheme, host and port alone, whatever a redirect says.
// Certificates are always checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "core/error.h"

namespace antisd::inline hub {

struct HttpOptions {
  std::string endpoint;
  std::string token;                // empty: none
  std::string user_agent;           // "antisd/0.1.0"
  std::int64_t silence_s = 30;      // without a byte: the connection is lost
  std::int64_t max_body = 1 << 28;  // of get()
};

struct HttpAnswer {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // of get()
  std::string url;                             // the one that answered
  std::string location;                        // of a redirect, whole; empty: none

  std::string header(const std::string& name) const;
  bool is_redirect() const { return status >= 300 && status < 400 && !location.empty(); }
};

// The connection could not be made, or broke: trying again may help.
class ConnectionError : public RunError {
  using RunError::RunError;
};
// `stop` said so.
class FetchStopped : public std::exception {};

class HttpClient {
 public:
  // `stop` is asked at least once a second.
  HttpClient(HttpOptions options, std::function<bool()> stop);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Follows redirects. ConnectionError; RunError for too many redirects or one away from https.
  HttpAnswer get(const std::string& url);
  // Follows redirects up to the answer that names the content of a file which is stored elsewhere.
  HttpAnswer head(const std::string& url);
  // Follows redirects. `begin` gets the status and headers of the last answer before its bytes;
  // if it returns false, or the status is not 200 or 206, the bytes are dropped.
  using Begin = std::function<bool(const HttpAnswer&)>;
  using Sink = std::function<void(std::span<const std::byte>)>;
  HttpAnswer download(const std::string& url, std::int64_t offset, const Begin& begin,
                      const Sink& sink);

 private:
  struct Request;
  struct State;
  HttpAnswer perform(const Request& request);
  HttpAnswer follow(Request request);

  std::unique_ptr<State> state_;
};

// "https://host:443" of a URL, in lower case; empty if it is not http(s).
std::string origin_of(const std::string& url);

}  // namespace antisd::inline hub
