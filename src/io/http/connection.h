// One connection in the loop's thread: bytes in, requests out; answers in, bytes out. It does one
// thing at a time, so a client that sends request after request without reading the answers costs
// one of each.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "io/http/event_loop.h"
#include "io/http/request.h"
#include "io/http/response.h"
#include "io/http/server.h"

namespace antisd::inline io {

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  using Clock = std::chrono::steady_clock;

  struct Events {
    std::function<void(HttpConnection&, HttpRequest)>
        request;  // to be answered by answer() or open_stream(), at any time
    std::function<void(HttpConnection&)> closed;  // once; the object must outlive the call
  };
  // `options` and `events` must outlive it.
  HttpConnection(EventLoop& loop, UniqueFd socket, const HttpServerOptions& options,
                 const Events& events);
  void start();

  void answer(std::string head, std::string body, bool keep_alive);
  std::shared_ptr<HttpStream::Sink> open_stream(std::string head, bool chunked, bool keep_alive);
  void close();
  // Runs `action`; where it throws, this connection is closed and the others live on.
  void protect(const std::function<void()>& action);

  // Whether no request of it is being answered, and since when nothing was done for it. Bytes that
  // trickle in do not count: only a whole request, and what the client takes of an answer.
  bool is_idle() const { return state_ == State::kReading || state_ == State::kDraining; }
  Clock::time_point since() const { return since_; }
  std::size_t waiting_bytes() const { return waiting_bytes_; }
  bool is_streaming() const { return state_ == State::kStreaming; }
  bool is_closed() const { return state_ == State::kClosed; }

 private:
  class StreamSink;
  // Draining: the last answer is out, and what the client still sends is thrown away for a moment,
  // since closing on unread bytes would take the answer back from it.
  enum class State { kReading, kHandling, kAnswering, kStreaming, kDraining, kClosed };

  void on_readable();
  void on_time();
  void read_requests();
  void refuse(int status, const std::string& problem);
  void drain();
  void queue(std::string bytes);
  void write_queue();
  bool send_some();
  void end_answer();
  void append_to_stream(std::string bytes);
  void end_stream(bool whole);

  const HttpServerOptions& options_;
  const Events& events_;
  EventLoop& loop_;
  UniqueFd socket_;
  Watch readable_, writable_, timer_;
  State state_ = State::kReading;
  Clock::time_point since_ = Clock::now();
  std::string input_;  // what came behind the request that is being answered
  HttpRequestParser parser_;
  HttpRequestParser::State timed_ = HttpRequestParser::State::kDone;  // what the timer runs for
  bool continued_ = false;
  std::deque<std::string> output_;
  std::size_t first_offset_ = 0;  // of output_'s first
  std::size_t waiting_bytes_ = 0;
  bool keep_alive_ = true, refused_ = false;
  bool chunked_ = false, stream_ended_ = false;
  std::shared_ptr<StreamSink> sink_;
};

}  // namespace antisd::inline io
