// For tests only: a client over a plain socket, on loopback, that sends given bytes.
#pragma once

#include <string>
#include <string_view>
#include <thread>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "core/error.h"
#include "io/http/request.h"
#include "io/unique_fd.h"

namespace antisd::testing {

struct Answer {
  int status = 0;  // 0: the connection ended before an answer
  HttpFields fields;
  std::string body;
  std::string field(std::string_view name) const {
    for (const auto& [key, value] : fields)
      if (key == name) return value;
    return "";
  }
};

class HttpClient {
 public:
  // `deaf`: the system buffers almost nothing for a client that does not read.
  explicit HttpClient(int port, bool deaf = false)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience = {60, 0};  // a test that hangs fails
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    const int few = 4096;
    if (deaf) setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &few, sizeof few);
    if (connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      throw RunError("cannot connect");
  }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  void end_sending() { shutdown(socket_.get(), SHUT_WR); }

  // The next answer; `head` for an answer to HEAD, which has no body.
  Answer receive(bool head = false) {
    Answer answer;
    std::size_t end;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos)
      if (!read_more()) return answer;
    const std::string header = buffer_.substr(0, end + 2);
    buffer_.erase(0, end + 4);
    answer.status = std::stoi(header.substr(9, 3));
    for (std::size_t at = header.find("\r\n") + 2; at < header.size();) {
      const std::size_t stop = header.find("\r\n", at), colon = header.find(": ", at);
      answer.fields.emplace_back(header.substr(at, colon - at),
                                 header.substr(colon + 2, stop - colon - 2));
      at = stop + 2;
    }
    if (head || answer.status == 100) return answer;
    if (answer.field("Transfer-Encoding") == "chunked") return read_chunks(answer), answer;
    const std::string length = answer.field("Content-Length");
    const std::size_t wanted = length.empty() ? std::string::npos : std::stoul(length);
    while (buffer_.size() < wanted && read_more()) {
    }
    answer.body = buffer_.substr(0, wanted);
    buffer_.erase(0, answer.body.size());
    return answer;
  }

  // Whether the server closes without another byte.
  bool is_closed_by_server() { return buffer_.empty() && !read_more(); }
  // A line of a streamed body.
  std::string read_until(std::string_view mark) {
    std::size_t at;
    while ((at = buffer_.find(mark)) == std::string::npos)
      if (!read_more()) return "";
    std::string text = buffer_.substr(0, at + mark.size());
    buffer_.erase(0, text.size());
    return text;
  }

 private:
  bool read_more() {
    char bytes[1 << 16];
    const ssize_t n = recv(socket_.get(), bytes, sizeof bytes, 0);
    if (n > 0) buffer_.append(bytes, static_cast<std::size_t>(n));
    return n > 0;
  }
  void read_chunks(Answer& answer) {
    while (true) {
      const std::string line = read_until("\r\n");
      if (line.empty()) return;
      const std::size_t size = std::stoul(line, nullptr, 16);
      while (buffer_.size() < size + 2 && read_more()) {
      }
      answer.body += buffer_.substr(0, size);
      buffer_.erase(0, size + 2);
      if (size == 0) return;
    }
  }

  UniqueFd socket_;
  std::string buffer_;
};

inline std::string request_text(const std::string& method, const std::string& target,
                                const HttpFields& fields = {}, const std::string& body = "") {
  std::string text = fmt::format("{} {} HTTP/1.1\r\n", method, target);
  bool has_host = false;
  for (const auto& [name, value] : fields) {
    text += fmt::format("{}: {}\r\n", name, value);
    has_host = has_host || name == "Host";
  }
  if (!has_host) text += "Host: 127.0.0.1\r\n";
  if (!body.empty()) text += fmt::format("Content-Length: {}\r\n", body.size());
  return text + "\r\n" + body;
}

// One request on its own connection.
inline Answer ask(int port, const std::string& method, const std::string& target,
                  const HttpFields& fields = {}, const std::string& body = "") {
  HttpClient client(port);
  client.send(request_text(method, target, fields, body));
  return client.receive(method == "HEAD");
}

// Runs serve() of `server` while the object lives.
template <typename Server>
class ServingThread {
 public:
  explicit ServingThread(Server& server)
      : server_(server), thread_([&server] { server.serve(); }) {}
  ~ServingThread() {
    server_.stop();
    thread_.join();
  }

 private:
  Server& server_;
  std::thread thread_;
};

}  // namespace antisd::testing
