// HTTP/1.1 for a few routes, made to stay answerable among hostile and broken clients. One thread
// waits for all connections (libevent); handlers run on a few threads of their own, so that a slow
// one holds up nobody else's bytes.
//
//   HttpServer server({.port = 8484});
//   server.route("GET", "/api/update",
//                [&](const HttpRequest& request) { return HttpResponse{.body = request.query}; });
//   server.serve();  // until stop(), from any thread or a signal handler
//
// What a client can hold is bounded: the time for a header and a body, however they drip; the bytes
// of each; the time without a byte taken of an answer; the bytes of all answers that wait to be
// taken. No client is turned away because there are many: when the table of connections is full,
// the one that has been idle longest is closed for the new one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "io/http/request.h"
#include "io/http/response.h"

namespace antisd::inline io {

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // an address of this machine, or a name of one
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
      256 << 20;  // of all answers; beyond it the most stalled connection is closed
  std::size_t stream_bytes = 1 << 20;  // of one stream; a client further behind is given up
  HttpFields fields = {};              // of every answer that does not have its own of the name
};

class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;
  // An answer ends the request here; nothing lets it pass to its route.
  using Guard = std::function<std::optional<HttpResponse>(const HttpRequest&)>;

  // Binds and listens: who connects before serve() waits. RunError where the address cannot be had.
  explicit HttpServer(HttpServerOptions options);
  ~HttpServer();

  // Before serve(). The path is compared whole. A GET route answers HEAD too; another method on a
  // known path is a 405.
  void route(std::string method, std::string path, Handler handler);
  void guard(Guard guard);

  int port() const;
  void serve();
  // Answers that are under way go out within stop_seconds; streams are broken off.
  void stop();

  struct Statistics {
    std::size_t connections = 0;  // open now
    std::size_t most = 0;         // that may be open
    std::size_t displaced = 0;    // closed to make room
  };
  Statistics statistics() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace antisd::inline io
