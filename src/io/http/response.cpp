#include "io/http/response.h"

#include <algorithm>
#include <atomic>
#include <ctime>

#include <fmt/format.h>

#include "core/check.h"

namespace antisd::inline io {
namespace {

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 303:
      return "See Other";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "";
  }
}

std::string date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts));
}

void append_field(std::string& head, std::string_view name, std::string_view value) {
  const auto is_bad = [](char c) { return c == '\r' || c == '\n' || c == '\0'; };
  ANTISD_CHECK(std::none_of(value.begin(), value.end(), is_bad));
  head.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace

struct HttpStream::Writer {
  explicit Writer(std::shared_ptr<Sink> s) : sink(std::move(s)) {}
  ~Writer() {
    if (!finished) sink->finish(false);
  }
  const std::shared_ptr<Sink> sink;
  std::atomic<bool> finished = false;
};

HttpStream::HttpStream(std::shared_ptr<Sink> sink)
    : writer_(std::make_shared<Writer>(std::move(sink))) {}

bool HttpStream::write(std::string_view bytes) const {
  return bytes.empty() || writer_->sink->write(bytes);
}

void HttpStream::finish() const {
  if (!writer_->finished.exchange(true)) writer_->sink->finish(true);
}

void HttpStream::answer(HttpResponse response) const {
  if (!writer_->finished.exchange(true)) writer_->sink->answer(std::move(response));
}

bool HttpStream::is_gone() const {
  return writer_->sink->is_gone();
}

HttpResponse HttpResponse::text(int status, std::string text) {
  return {.status = status, .body = std::move(text)};
}

std::string response_head(const HttpResponse& response, const HttpFields& common,
                          std::int64_t length, int minor_version, bool keep_alive) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason_of(response.status));
  append_field(head, "Date", date());
  append_field(head, "Content-Type", response.type);
  if (length >= 0)
    append_field(head, "Content-Length", std::to_string(length));
  else if (minor_version > 0)
    append_field(head, "Transfer-Encoding", "chunked");
  append_field(head, "Connection", keep_alive ? "keep-alive" : "close");
  for (const auto& [name, value] : response.fields)
    append_field(head, name, value);
  for (const auto& field : common) {
    const bool is_own = std::any_of(response.fields.begin(), response.fields.end(),
                                    [&](const auto& own) { return own.first == field.first; });
    if (!is_own) append_field(head, field.first, field.second);
  }
  return head + "\r\n";
}

}  // namespace antisd::inline io
