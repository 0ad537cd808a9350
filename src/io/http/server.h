// HTTP/1.1 for a few routes, which stays responsive among hostile and broken clients. One thread
// waits for all connections (libevent); handlers run on their own threads, so a slow one delays no
// other connection.
//
//   HttpServer server({.port = 8484});
//   server.route("GET", "/api/update",
//                [&](const HttpRequest& request) { return HttpResponse{.body = request.query}; });
//   server.serve();  // until stop(), from any thread or a signal handler
//
// The resources of a client are limited: the time and bytes of a header and a body; the time in
// which it takes no byte of an answer; the bytes of all unsent answers. No client is rejected
// because there are many: when the table of connections is full, the one that has been idle longest
// is closed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "io/http/request.h"
#include "io/http/response.h"

namespace antisd::inline io {

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // an address or name of this machine
  int port = 0;                    // 0: a free one
  HttpLimits limits = {};
  int connections = 900;      // fewer where the system allows fewer open files
  int workers = 4;            // threads for handlers
  double header_seconds = 5;  // from a header's first byte to its last
  double body_seconds = 30;   // from the header's end to the body's
  double idle_seconds = 60;   // between requests
  double stall_seconds = 20;  // for a client to take a byte of its answer
  double stop_seconds = 1;    // for answers that are under way when it stops
  std::size_t waiting_bytes =
      256 << 20;  // of all answers; above it the most stalled connection is closed
  std::size_t stream_bytes = 1 << 20;  // of one stream; a client further behind is dropped
  HttpFields fields = {};              // of every answer, unless it has its own
  // The server's own answers to what it does not take: a status and what is wrong.
  std::function<HttpResponse(int status, const std::string& problem)> refusal =
      [](int status, const std::string& problem) {
        return HttpResponse::text(status, problem + "\n");
      };
};

class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;
  // An answer ends the request; nothing lets it pass to its route. Called before a body is read,
  // in the loop's thread, and once more with it.
  using Guard = std::function<std::optional<HttpResponse>(const HttpRequest&)>;

  // Binds and listens: clients that connect before serve() wait. RunError if the address is
  // unavailable.
  explicit HttpServer(HttpServerOptions options);
  ~HttpServer();

  // Call it before serve(). The whole path is compared; one that ends in "/*" takes all paths below
  // it. A GET route answers HEAD too; another method on a known path gives 405.
  void route(std::string method, std::string path, Handler handler);
  void guard(Guard guard);

  int port() const;
  void serve();
  // Answers in progress are sent within stop_seconds; streams are aborted.
  void stop();

  struct Statistics {
    std::size_t connections = 0;  // open now
    std::size_t most = 0;         // allowed
    std::size_t displaced = 0;    // closed to make room
  };
  Statistics statistics() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace antisd::inline io
