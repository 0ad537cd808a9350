// What a handler answers: a whole body, or a stream that goes on after the handler has returned.
//
//   const HttpResponse whole{.type = "application/json", .body = text};
//   const HttpResponse live{.type = "text/event-stream",
//                           .stream = [&](HttpStream stream) { submit(prompt, stream); }};
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "io/http/request.h"

namespace antisd::inline io {

// The body of an answer that is written bit by bit, from any thread. Copies are the same stream;
// when the last one goes without finish(), the connection is broken off, so that the client does
// not take a part for the whole.
class HttpStream {
 public:
  // Where the bytes go: the connection, which forgets the stream when it closes.
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual bool write(std::string_view bytes) = 0;
    virtual void finish(bool whole) = 0;
  };
  explicit HttpStream(std::shared_ptr<Sink> sink);

  // Never waits. False once the client is gone or so far behind that it was given up, or the server
  // stops: then nobody wants the rest.
  bool write(std::string_view bytes) const;
  void finish() const;

 private:
  struct Writer;
  std::shared_ptr<Writer> writer_;
};

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  HttpFields fields = {};
  std::string body = {};
  std::function<void(HttpStream)> stream =
      {};  // where set: called once, and the body is what it writes

  static HttpResponse text(int status, std::string text);
};

// Status line and fields, those of `common` where the response has none of that name. `length` is
// the body's; -1: it is chunked, or goes on to the end of an HTTP/1.0 connection. Throws where a
// field could end its line.
std::string response_head(const HttpResponse& response, const HttpFields& common,
                          std::int64_t length, int minor_version, bool keep_alive);

}  // namespace antisd::inline io
