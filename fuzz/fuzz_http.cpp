// libFuzzer: the bytes of a connection. Requests do not depend on how the bytes are split, stay
// within the limits, and parse the same when they are written again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "io/http/request.h"

namespace {

using antisd::HttpRequest;
using antisd::HttpRequestParser;
using State = HttpRequestParser::State;

constexpr antisd::HttpLimits kLimits{.header_bytes = 2000, .fields = 20, .body_bytes = 1000};

void require(bool holds) {
  if (!holds) std::abort();
}

struct Parsed {
  std::vector<HttpRequest> requests;
  State end = State::kHeader;
  int status = 0;
};

// All requests of the bytes, which arrive in pieces of 1 to `most`.
Parsed parse(std::string_view bytes, std::size_t most) {
  Parsed parsed;
  HttpRequestParser parser(kLimits);
  for (std::size_t at = 0, length = 0; at < bytes.size(); at += length) {
    length = std::min(1 + at % most, bytes.size() - at);
    std::string_view piece = bytes.substr(at, length);
    while (!piece.empty()) {
      const std::size_t taken = parser.take(piece);
      require(taken > 0 && taken <= piece.size());
      piece.remove_prefix(taken);
      if (parser.state() == State::kRefused) {
        require(parser.status() >= 400 && !parser.problem().empty());
        parsed.end = State::kRefused;
        parsed.status = parser.status();
        return parsed;
      }
      if (parser.state() != State::kDone) continue;
      parsed.requests.push_back(parser.take_request());
      parser = HttpRequestParser(kLimits);
    }
  }
  parsed.end = parser.state();
  return parsed;
}

void check(const HttpRequest& request) {
  require(request.body.size() <= kLimits.body_bytes && request.fields.size() <= kLimits.fields);
  require(request.path.starts_with('/') || request.path == "*" || request.path.starts_with('%'));
  for (const auto& [name, value] : request.fields)
    require(!name.empty() &&
            value.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
  for (const char* name : {"run", "step", "since", ""})
    (void)request.parameter(name);
}

// The request as another program might send it.
std::string written(const HttpRequest& request) {
  std::string path;
  for (const char c : request.path)
    path += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  if (request.path.starts_with('/')) path.replace(0, 3, "/");
  if (request.path == "*") path = "*";
  std::string text =
      fmt::format("{} {}{}{} HTTP/1.{}\r\n", request.method, path, request.query.empty() ? "" : "?",
                  request.query, request.minor_version);
  for (const auto& [name, value] : request.fields)
    if (name != "transfer-encoding" && name != "content-length")
      text += name + ": " + value + "\r\n";
  return text + fmt::format("Content-Length: {}\r\n\r\n", request.body.size()) + request.body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Parsed whole = parse(bytes, size + 1), pieces = parse(bytes, 13), single = parse(bytes, 1);
  for (const Parsed* other : {&pieces, &single}) {
    require(other->requests.size() == whole.requests.size() && other->end == whole.end &&
            other->status == whole.status);
    for (std::size_t i = 0; i < whole.requests.size(); ++i)
      require(other->requests[i].path == whole.requests[i].path &&
              other->requests[i].fields == whole.requests[i].fields &&
              other->requests[i].body == whole.requests[i].body);
  }
  for (const HttpRequest& request : whole.requests) {
    check(request);
    HttpRequestParser again({.header_bytes = 20'000, .fields = 30, .body_bytes = 1000});
    const std::string text = written(request);
    require(again.take(text) == text.size() && again.state() == State::kDone);
    require(again.request().path == request.path && again.request().query == request.query &&
            again.request().body == request.body &&
            again.request().keep_alive == request.keep_alive);
  }
  return 0;
}
