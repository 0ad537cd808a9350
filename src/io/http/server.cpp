#include "io/http/server.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <unordered_map>

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "core/thread_pool.h"
#include "io/http/connection.h"
#include "io/http/event_loop.h"
#include "io/http/listener.h"

namespace antisd::inline io {
namespace {

constexpr int kAcceptsATurn = 64;
constexpr double kPauseSeconds = 0.1;  // if the system has no more sockets

bool takes(std::string_view route, std::string_view path) {
  if (!route.ends_with("/*")) return route == path;
  route.remove_suffix(1);
  return path.size() > route.size() && path.starts_with(route);
}

}  // namespace

class HttpServer::Loop {
 public:
  explicit Loop(HttpServerOptions options)
      : options_(std::move(options)),
        most_(static_cast<std::size_t>(connections_within_limits(options_.connections))),
        listener_(listen_on(options_.host, options_.port)),
        port_(port_of(listener_.get())),
        acceptable_(loop_, listener_.get(), EV_READ | EV_PERSIST, [this] { accept_some(); }),
        pause_(loop_, -1, 0, [this] { acceptable_.start(); }),
        stop_timer_(loop_, -1, 0, [this] { out_of_time_ = true; }),
        pool_(std::max(1, options_.workers)) {
    events_.request = [this](HttpConnection& connection, HttpRequest request) {
      hand_over(connection, std::move(request));
    };
    events_.closed = [this](HttpConnection& connection) { bury(connection); };
    events_.grown = [this] { bound_waiting_bytes(); };
  }

  void serve() {
    if (!stopping_) acceptable_.start();
    while (!stopping_)
      turn();
    loop_.wake();  // so that the turn does not wait: it does what was posted before the stop
    turn();
    acceptable_.stop();
    pause_.stop();
    listener_.reset();
    stop_timer_.start(options_.stop_seconds);
    close_where([](const HttpConnection& c) { return c.is_idle() || c.is_streaming(); });
    while (!connections_.empty() && !out_of_time_) {
      turn();
      close_where([](const HttpConnection& c) { return c.is_idle() || c.is_streaming(); });
    }
    close_where([](const HttpConnection&) { return true; });
    buried_.clear();
  }

  void stop() {
    stopping_ = true;
    loop_.wake();
  }

  void route(std::string method, std::string path, Handler handler) {
    routes_.push_back({std::move(method), std::move(path), std::move(handler)});
  }
  void guard(Guard guard) {
    guard_ = std::move(guard);
    events_.refusal = guard_;
  }
  int port() const { return port_; }
  Statistics statistics() const { return {open_, most_, displaced_}; }

 private:
  struct Route {
    std::string method, path;
    Handler handler;
  };

  void turn() {
    loop_.turn();
    buried_.clear();  // none of their calls is running now
  }

  void accept_some() {
    for (int i = 0; i < kAcceptsATurn; ++i) {
      UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket) {
        const int error = errno;
        if (error == EINTR || error == ECONNABORTED || error == EPROTO) continue;
        if (error == EAGAIN || error == EWOULDBLOCK) return;
        // Out of descriptors or memory. A waiting client stays ready, so accepting at once again
        // would keep a core busy.
        make_room();
        acceptable_.stop();
        pause_.start(kPauseSeconds);
        return;
      }
      try {
        add(std::move(socket));
      } catch (const std::exception&) {  // out of memory: only this client is lost
      }
    }
  }

  void add(UniqueFd socket) {
    const int yes = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    while (connections_.size() >= most_)
      make_room();
    const auto connection =
        std::make_shared<HttpConnection>(loop_, std::move(socket), options_, events_);
    connections_.emplace(connection.get(), connection);
    open_ = connections_.size();
    connection->start();
  }

  // Closes the connection that has been idle longest; if all are busy, the one whose client has
  // taken nothing for the longest time.
  void make_room() {
    const auto longest = std::min_element(
        connections_.begin(), connections_.end(), [](const auto& a, const auto& b) {
          return std::make_pair(!a.second->is_idle(), a.second->since()) <
                 std::make_pair(!b.second->is_idle(), b.second->since());
        });
    if (longest == connections_.end()) return;
    ++displaced_;
    longest->second->close();
  }

  void bury(HttpConnection& connection) {
    const auto found = connections_.find(&connection);
    if (found == connections_.end()) return;
    buried_.push_back(std::move(found->second));
    connections_.erase(found);
    open_ = connections_.size();
  }

  void close_where(const std::function<bool(const HttpConnection&)>& goes) {
    std::vector<std::shared_ptr<HttpConnection>> going;
    for (const auto& [key, connection] : connections_)
      if (goes(*connection)) going.push_back(connection);
    for (const auto& connection : going)
      connection->close();
  }

  void hand_over(HttpConnection& connection, HttpRequest request) {
    pool_.submit([this, weak = connection.weak_from_this(), request = std::move(request)] {
      if (weak.expired()) return;
      try {
        respond(weak, request);
      } catch (const std::exception&) {  // out of memory, or an invalid field
        close_later(weak);
      }
    });
  }

  void close_later(const std::weak_ptr<HttpConnection>& weak) {
    loop_.post([weak] {
      if (const auto connection = weak.lock()) connection->close();
    });
  }

  // In a worker's thread.
  void respond(const std::weak_ptr<HttpConnection>& weak, const HttpRequest& request) {
    HttpResponse response = response_to(request);
    const bool keep = request.keep_alive;
    if (response.stream && request.method != "HEAD")
      return respond_by_stream(weak, request, response);
    const auto length = static_cast<std::int64_t>(response.body.size());
    std::string head = response_head(response, options_.fields, response.stream ? -1 : length,
                                     request.minor_version, keep);
    if (request.method == "HEAD") response.body.clear();
    loop_.post(
        [this, weak, keep, head = std::move(head), body = std::move(response.body)]() mutable {
          const auto connection = weak.lock();
          if (!connection || connection->is_closed()) return;
          connection->protect([&] { connection->answer(std::move(head), std::move(body), keep); });
          bound_waiting_bytes();
        });
  }

  void respond_by_stream(const std::weak_ptr<HttpConnection>& weak, const HttpRequest& request,
                         const HttpResponse& response) {
    const bool chunked = request.minor_version > 0, keep = chunked && request.keep_alive;
    std::string head = response_head(response, options_.fields, -1, request.minor_version, keep);
    loop_.post([this, weak, chunked, keep, waits = response.head_waits, head = std::move(head),
                produce = response.stream] {
      const auto connection = weak.lock();
      if (!connection || connection->is_closed()) return;
      connection->protect([&] {
        const HttpStream stream(connection->open_stream(head, waits, chunked, keep));
        pool_.submit([stream, produce] { produce(stream); });
      });
    });
  }

  // Clients that request much and read nothing must not fill the memory.
  void bound_waiting_bytes() {
    while (true) {
      std::size_t sum = 0;
      HttpConnection* stalled = nullptr;
      std::size_t holders = 0;
      for (const auto& [key, connection] : connections_) {
        if (connection->waiting_bytes() == 0) continue;
        sum += connection->waiting_bytes();
        ++holders;
        if (stalled == nullptr || connection->since() < stalled->since())
          stalled = connection.get();
      }
      if (sum <= options_.waiting_bytes || holders < 2) return;
      ++displaced_;
      stalled->close();
    }
  }

  HttpResponse response_to(const HttpRequest& request) const {
    try {
      if (guard_)
        if (std::optional<HttpResponse> refused = guard_(request)) return std::move(*refused);
      std::string allowed;
      for (const Route& route : routes_) {
        if (!takes(route.path, request.path)) continue;
        const bool is_get = route.method == "GET";
        if (route.method == request.method || (is_get && request.method == "HEAD"))
          return route.handler(request);
        allowed +=
            fmt::format("{}{}", allowed.empty() ? "" : ", ", is_get ? "GET, HEAD" : route.method);
      }
      if (allowed.empty()) return options_.refusal(404, "there is nothing here");
      HttpResponse response = options_.refusal(405, "this address takes " + allowed);
      response.fields.emplace_back("Allow", allowed);
      return response;
    } catch (const std::exception&) {
      return options_.refusal(500, "the server failed on this request");
    }
  }

  const HttpServerOptions options_;
  const std::size_t most_;
  EventLoop loop_;
  UniqueFd listener_;
  const int port_;
  Watch acceptable_, pause_, stop_timer_;
  HttpConnection::Events events_;
  std::vector<Route> routes_;
  Guard guard_;
  std::unordered_map<const HttpConnection*, std::shared_ptr<HttpConnection>> connections_;
  std::vector<std::shared_ptr<HttpConnection>> buried_;  // closed; their calls may still be running
  std::atomic<bool> stopping_ = false;
  bool out_of_time_ = false;
  std::atomic<std::size_t> open_ = 0, displaced_ = 0;
  ThreadPool pool_;  // last: its threads use everything above
};

HttpServer::HttpServer(HttpServerOptions options)
    : loop_(std::make_unique<Loop>(std::move(options))) {}
HttpServer::~HttpServer() = default;
void HttpServer::route(std::string method, std::string path, Handler handler) {
  loop_->route(std::move(method), std::move(path), std::move(handler));
}
void HttpServer::guard(Guard guard) {
  loop_->guard(std::move(guard));
}
int HttpServer::port() const {
  return loop_->port();
}
void HttpServer::serve() {
  loop_->serve();
}
void HttpServer::stop() {
  loop_->stop();
}
HttpServer::Statistics HttpServer::statistics() const {
  return loop_->statistics();
}

}  // namespace antisd::inline io
