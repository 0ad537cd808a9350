// A handler's answer: a complete body, or a stream that continues after the handler has returned.
//
//   const HttpResponse whole{.type = "application/json", .body = text};
//   const HttpResponse live{.type = "text/event-stream",
//                           .stream = [&](HttpStream stream) { submit(prompt, stream); }};
//
// A stream whose head waits can still become a complete answer with another status:
//
//   const HttpResponse later{.stream = [&](HttpStream stream) { submit(prompt, stream); },
//                            .head_waits = true};
//   stream.answer(HttpResponse{.status = 500, .body = text});  // from any thread
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "io/http/request.h"

namespace antisd::inline io {

struct HttpResponse;

// The body of an answer that is written piece by piece, from any thread. Copies are the same
// stream; if the last copy is destroyed without finish(), the connection is aborted, so the client
// does not mistake a part for the whole.
class HttpStream {
 public:
  // The destination of the bytes: the connection, which drops the stream when it closes.
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual bool write(std::string_view bytes) = 0;
    virtual void finish(bool whole) = 0;
    virtual void answer(HttpResponse response) = 0;
    virtual bool is_gone() = 0;
  };
  explicit HttpStream(std::shared_ptr<Sink> sink);

  // Never blocks. False once the client has disconnected or is too far behind, or the server stops:
  // the rest is not needed.
  bool write(std::string_view bytes) const;
  void finish() const;
  // In place of a stream whose head waits, before the first write().
  void answer(HttpResponse response) const;
  // Whether write() would return false.
  bool is_gone() const;

 private:
  struct Writer;
  std::shared_ptr<Writer> writer_;
};

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  HttpFields fields = {};
  std::string body = {};
  std::function<void(HttpStream)> stream = {};  // if set: called once, and it writes the body
  bool head_waits = false;  // of a stream: the head is sent with its first bytes, not at once

  static HttpResponse text(int status, std::string text);
};

// Status line and fields; `common` fields are added unless the response has them. `length` is the
// body's; -1: chunked, or until the end of an HTTP/1.0 connection. Throws if a field contains a
// line break.
std::string response_head(const HttpResponse& response, const HttpFields& common,
                          std::int64_t length, int minor_version, bool keep_alive);

}  // namespace antisd::inline io
