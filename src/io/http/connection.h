// One connection in the loop's thread: bytes in, requests out; answers in, bytes out. It handles
// one request at a time, so a client that pipelines requests without reading answers costs one of
// each.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
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
    // For a header whose body has not come yet: an answer in place of reading it.
    std::function<std::optional<HttpResponse>(const HttpRequest&)> refusal;
    std::function<void()> grown;  // an answer waits to be sent that no answer() call announced
  };
  // `options` and `events` must outlive it.
  HttpConnection(EventLoop& loop, UniqueFd socket, const HttpServerOptions& options,
                 const Events& events);
  void start();

  void answer(std::string head, std::string body, bool keep_alive);
  // `waits`: the head is sent with the first bytes.
  std::shared_ptr<HttpStream::Sink> open_stream(std::string head, bool waits, bool chunked,
                                                bool keep_alive);
  void close();
  // Runs `action`; if it throws, only this connection is closed.
  void protect(const std::function<void()>& action);

  // Whether no request is being answered, and since when nothing happened. Bytes that trickle in do
  // not count: only a complete request, and bytes of an answer that the client takes.
  bool is_idle() const { return state_ == State::kReading || state_ == State::kDraining; }
  Clock::time_point since() const { return since_; }
  std::size_t waiting_bytes() const { return waiting_bytes_; }
  bool is_streaming() const { return state_ == State::kStreaming && !stream_ended_; }
  bool is_closed() const { return state_ == State::kClosed; }

 private:
  class StreamSink;
  // Draining: the last answer is sent, and further bytes of the client are discarded for a moment,
  // since closing with unread bytes would cancel the answer.
  enum class State { kReading, kHandling, kAnswering, kStreaming, kDraining, kClosed };

  void on_readable();
  void on_time();
  void read_requests();
  void refuse(const HttpResponse& response);
  void drain();
  void queue(std::string bytes);
  void write_queue();
  bool send_some();
  void end_answer();
  void append_to_stream(std::string bytes);
  void end_stream(bool whole);
  void answer_in_place(const HttpResponse& response);
  void queue_waiting_head();

  const HttpServerOptions& options_;
  const Events& events_;
  EventLoop& loop_;
  UniqueFd socket_;
  Watch readable_, writable_, timer_;
  State state_ = State::kReading;
  Clock::time_point since_ = Clock::now();
  std::string input_;  // bytes after the request that is being answered
  HttpRequestParser parser_;
  HttpRequestParser::State timed_ = HttpRequestParser::State::kDone;  // what the timer is for
  bool continued_ = false;
  std::deque<std::string> output_;
  std::size_t first_offset_ = 0;  // of output_'s first
  std::size_t waiting_bytes_ = 0;
  bool keep_alive_ = true, refused_ = false;
  bool chunked_ = false, stream_ended_ = false;
  std::string waiting_head_;  // of a stream that has not sent a byte
  std::shared_ptr<StreamSink> sink_;
};

}  // namespace antisd::inline io
