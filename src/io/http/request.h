// An HTTP/1.1 request, and an incremental parser for the bytes of a connection.
//
//   HttpRequestParser parser({.body_bytes = 4096});
//   const std::size_t taken = parser.take(bytes);  // the rest belongs to the next request
//   if (parser.state() == HttpRequestParser::State::kDone) use(parser.request().path);
//
// It is strict (RFC 9112): lines end in CR LF, a field is a token, a colon and visible text, a body
// has one length. Ambiguous input is rejected.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace antisd::inline io {

using HttpFields = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;
  std::string path;   // decoded, starts with / (or is *)
  std::string query;  // as received, without the ?
  std::string host;   // of an absolute target, else of the Host field; with the port
  int minor_version = 1;
  bool keep_alive = true;
  HttpFields fields;  // names in lower case
  std::string body;

  // The first field of this name, or "". Names are in lower case.
  std::string_view field(std::string_view name) const;
  // A decoded parameter of the query; nothing if it is absent.
  std::optional<std::string> parameter(std::string_view name) const;
};

struct HttpLimits {
  std::size_t header_bytes =
      16 << 10;  // request line and fields; also of a chunked body's own lines
  std::size_t fields = 100;
  std::size_t body_bytes = 1 << 20;
};

class HttpRequestParser {
 public:
  enum class State { kHeader, kBody, kDone, kRefused };

  explicit HttpRequestParser(HttpLimits limits) : limits_(limits) {}

  // Consumes bytes until the request is complete or rejected; returns their number.
  std::size_t take(std::string_view bytes);

  State state() const { return state_; }
  // Whether the client waits for "100 Continue" before it sends the body.
  bool expects_continue() const { return expects_continue_; }
  const HttpRequest& request() const { return request_; }
  HttpRequest take_request() { return std::move(request_); }
  // For kRefused: a status of at least 400, and what is wrong.
  int status() const { return status_; }
  const std::string& problem() const { return problem_; }

 private:
  enum class BodyPart { kPlain, kChunkSize, kChunk, kChunkEnd, kTrailer };

  void refuse(int status, std::string problem);
  std::size_t take_header(std::string_view bytes);
  std::size_t take_body(std::string_view bytes);
  std::size_t take_body_bytes(std::string_view bytes);
  bool take_line_byte(char byte);  // true: line_ is complete, without its CR LF
  void end_chunk_line();
  void read_header();
  bool read_request_line(std::string_view line);
  bool read_version(std::string_view version);
  bool read_target(std::string_view target);
  bool read_field(std::string_view line);
  bool check_host();
  bool read_connection();
  void read_body_length();
  bool read_content_length(std::string_view text);

  HttpLimits limits_;
  State state_ = State::kHeader;
  BodyPart part_ = BodyPart::kPlain;
  HttpRequest request_;
  std::string header_;
  std::string line_;             // of a chunked body
  std::size_t line_bytes_ = 0;   // of all such lines
  std::size_t blank_bytes_ = 0;  // line ends before the request line
  std::size_t wanted_ = 0;       // bytes of the body or chunk still to come
  bool expects_continue_ = false;
  int status_ = 0;
  std::string problem_;
};

// "%41" -> "A"; nothing for a broken escape.
std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space);

}  // namespace antisd::inline io
