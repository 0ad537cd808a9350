#include "io/http/connection.h"

#include <algorithm>
#include <cerrno>
#include <mutex>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace antisd::inline io {
namespace {

constexpr std::size_t kReadBytes = 16 << 10;
constexpr std::size_t kPieces = 16;  // of the output per call
constexpr double kDrainSeconds = 1;
constexpr int kReadsATurn = 16;  // then other connections get a turn

}  // namespace

// The stream's end of a connection, for other threads. The connection releases it when it closes;
// until then the loop exists.
class HttpConnection::StreamSink : public HttpStream::Sink {
 public:
  StreamSink(EventLoop& loop, std::weak_ptr<HttpConnection> connection, std::size_t limit)
      : loop_(&loop), connection_(std::move(connection)), limit_(limit) {}

  bool write(std::string_view bytes) override {
    const std::lock_guard lock(mutex_);
    if (loop_ == nullptr) return false;
    waiting_ += bytes.size();
    if (waiting_ > limit_) {
      post([](HttpConnection& connection) { connection.close(); });
      loop_ = nullptr;
      return false;
    }
    post([text = std::string(bytes)](HttpConnection& connection) {
      connection.append_to_stream(text);
    });
    return true;
  }
  void finish(bool whole) override {
    const std::lock_guard lock(mutex_);
    if (loop_ == nullptr) return;
    post([whole](HttpConnection& connection) { connection.end_stream(whole); });
    loop_ = nullptr;
  }
  void answer(HttpResponse response) override {
    const std::lock_guard lock(mutex_);
    if (loop_ == nullptr) return;
    post([response = std::move(response)](HttpConnection& connection) {
      connection.answer_in_place(response);
    });
    loop_ = nullptr;
  }
  bool is_gone() override {
    const std::lock_guard lock(mutex_);
    return loop_ == nullptr;
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    loop_ = nullptr;
  }
  void taken(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    waiting_ -= std::min(bytes, waiting_);
  }

 private:
  void post(std::function<void(HttpConnection&)> task) {
    loop_->post([connection = connection_, task = std::move(task)] {
      const auto alive = connection.lock();
      if (alive && !alive->is_closed()) alive->protect([&] { task(*alive); });
    });
  }

  std::mutex mutex_;
  EventLoop* loop_;
  std::weak_ptr<HttpConnection> connection_;
  std::size_t limit_, waiting_ = 0;
};

HttpConnection::HttpConnection(EventLoop& loop, UniqueFd socket, const HttpServerOptions& options,
                               const Events& events)
    : options_(options),
      events_(events),
      loop_(loop),
      socket_(std::move(socket)),
      readable_(loop, socket_.get(), EV_READ | EV_PERSIST,
                [this] { protect([this] { on_readable(); }); }),
      writable_(loop, socket_.get(), EV_WRITE, [this] { protect([this] { write_queue(); }); }),
      timer_(loop, -1, 0, [this] { protect([this] { on_time(); }); }),
      parser_(options.limits) {}

void HttpConnection::protect(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception&) {  // out of memory
    close();
  }
}

void HttpConnection::start() {
  readable_.start();
  timer_.start(options_.idle_seconds);
}

void HttpConnection::close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  if (sink_) sink_->let_go();
  readable_.stop();
  writable_.stop();
  timer_.stop();
  socket_.reset();
  output_.clear();
  waiting_bytes_ = 0;
  events_.closed(*this);
}

void HttpConnection::on_readable() {
  char bytes[kReadBytes];
  for (int i = 0; i < kReadsATurn; ++i) {
    const ssize_t n = recv(socket_.get(), bytes, sizeof bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (n <= 0) return close();  // the streaming client has left; other states do not read
    if (state_ == State::kDraining) continue;
    input_.append(bytes, static_cast<std::size_t>(n));
    if (state_ == State::kReading) read_requests();
    if (state_ == State::kStreaming && input_.size() > kReadBytes) readable_.stop();
    if (state_ != State::kReading && state_ != State::kDraining) return;
  }
}

// Takes one complete request out of input_, if there is one, and passes it on.
void HttpConnection::read_requests() {
  using Parsed = HttpRequestParser::State;
  if (input_.empty()) return;
  input_.erase(0, parser_.take(input_));
  const Parsed parsed = parser_.state();
  if (parsed == Parsed::kRefused)
    return refuse(options_.refusal(parser_.status(), parser_.problem()));
  if (parsed == Parsed::kDone) {
    state_ = State::kHandling;
    since_ = Clock::now();
    timer_.stop();
    readable_.stop();
    HttpRequest request = parser_.take_request();
    parser_ = HttpRequestParser(options_.limits);
    timed_ = Parsed::kDone;
    continued_ = false;
    return events_.request(*this, std::move(request));
  }
  // One time limit for a whole header and one for a whole body: it does not restart with each byte.
  if (parsed != timed_) {
    if (parsed == Parsed::kBody && events_.refusal) {
      if (const auto refused = events_.refusal(parser_.request())) return refuse(*refused);
    }
    timed_ = parsed;
    timer_.start(parsed == Parsed::kHeader ? options_.header_seconds : options_.body_seconds);
  }
  if (parsed == Parsed::kBody && parser_.expects_continue() && !continued_) {
    continued_ = true;
    queue("HTTP/1.1 100 Continue\r\n\r\n");
    write_queue();
  }
}

void HttpConnection::refuse(const HttpResponse& response) {
  refused_ = true;
  answer(response_head(response, options_.fields, static_cast<std::int64_t>(response.body.size()),
                       1, false),
         response.body, false);
}

void HttpConnection::answer(std::string head, std::string body, bool keep_alive) {
  state_ = State::kAnswering;
  keep_alive_ = keep_alive;
  since_ = Clock::now();
  readable_.stop();
  timer_.start(options_.stall_seconds);
  queue(std::move(head));
  queue(std::move(body));
  write_queue();
}

std::shared_ptr<HttpStream::Sink> HttpConnection::open_stream(std::string head, bool waits,
                                                              bool chunked, bool keep_alive) {
  sink_ = std::make_shared<StreamSink>(loop_, weak_from_this(), options_.stream_bytes);
  const std::shared_ptr<StreamSink> sink = sink_;  // writing the head may close the connection
  state_ = State::kStreaming;
  chunked_ = chunked;
  keep_alive_ = keep_alive;
  stream_ended_ = false;
  since_ = Clock::now();
  readable_.start();  // notices when the client disconnects
  waiting_head_ = std::move(head);
  timer_.start(options_.stall_seconds);
  if (!waits) queue_waiting_head();
  write_queue();
  return sink;
}

void HttpConnection::queue_waiting_head() {
  queue(std::exchange(waiting_head_, {}));
}

void HttpConnection::answer_in_place(const HttpResponse& response) {
  if (state_ != State::kStreaming || waiting_head_.empty()) return close();
  waiting_head_.clear();
  sink_.reset();
  answer(response_head(response, options_.fields, static_cast<std::int64_t>(response.body.size()),
                       chunked_ ? 1 : 0, keep_alive_),
         response.body, keep_alive_);
  events_.grown();
}

void HttpConnection::append_to_stream(std::string bytes) {
  if (state_ != State::kStreaming) return;
  const std::size_t size = bytes.size();
  if (waiting_bytes_ == 0) timer_.start(options_.stall_seconds);
  queue_waiting_head();
  queue(chunked_ ? fmt::format("{:x}\r\n{}\r\n", size, bytes) : std::move(bytes));
  write_queue();
}

void HttpConnection::end_stream(bool whole) {
  if (state_ != State::kStreaming) return;
  if (!whole) return close();
  stream_ended_ = true;
  queue_waiting_head();
  if (chunked_) queue("0\r\n\r\n");
  write_queue();
}

void HttpConnection::queue(std::string bytes) {
  if (bytes.empty()) return;
  waiting_bytes_ += bytes.size();
  output_.push_back(std::move(bytes));
}

void HttpConnection::write_queue() {
  while (!output_.empty()) {
    if (send_some()) continue;
    if (state_ != State::kClosed) writable_.start();
    return;
  }
  if (state_ == State::kStreaming) {
    timer_.stop();  // it may send nothing for any time
    if (stream_ended_) end_answer();
  } else if (state_ == State::kAnswering) {
    end_answer();
  }
}

// False if nothing can be sent now, or ever.
bool HttpConnection::send_some() {
  iovec pieces[kPieces];
  std::size_t count = 0;
  for (auto piece = output_.begin(); piece != output_.end() && count < kPieces; ++piece) {
    const std::size_t offset = count == 0 ? first_offset_ : 0;
    pieces[count++] = {piece->data() + offset, piece->size() - offset};
  }
  msghdr message = {};
  message.msg_iov = pieces;
  message.msg_iovlen = count;
  const ssize_t n = sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
  if (n < 0 && errno == EINTR) return true;
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  if (n < 0) return close(), false;
  auto left = static_cast<std::size_t>(n);
  waiting_bytes_ -= left;
  if (sink_) sink_->taken(left);
  since_ = Clock::now();
  if (state_ == State::kAnswering || state_ == State::kStreaming)
    timer_.start(options_.stall_seconds);
  while (left > 0) {
    const std::size_t here = output_.front().size() - first_offset_;
    if (left < here) {
      first_offset_ += left;
      break;
    }
    left -= here;
    first_offset_ = 0;
    output_.pop_front();
  }
  return true;
}

void HttpConnection::end_answer() {
  if (sink_) sink_->let_go();
  sink_.reset();
  since_ = Clock::now();
  if (refused_) return drain();
  if (!keep_alive_) return close();
  state_ = State::kReading;
  timer_.start(options_.idle_seconds);
  if (input_.empty()) return readable_.start();
  // Posted, not called: a client that pipelines thousands of requests would nest as many calls.
  loop_.post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || self->state_ != State::kReading) return;
    self->readable_.start();
    self->protect([&] { self->read_requests(); });
  });
}

void HttpConnection::drain() {
  state_ = State::kDraining;
  shutdown(socket_.get(), SHUT_WR);
  timer_.start(kDrainSeconds);
  readable_.start();
}

void HttpConnection::on_time() {
  const bool in_request = state_ == State::kReading && timed_ != HttpRequestParser::State::kDone;
  if (!in_request) return close();
  refuse(options_.refusal(408, timed_ == HttpRequestParser::State::kHeader
                                   ? "the header took too long"
                                   : "the body took too long"));
}

}  // namespace antisd::inline io
