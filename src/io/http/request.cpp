#include "io/http/request.h"

#include <algorithm>
#include <charconv>

namespace antisd::inline io {
namespace {

constexpr std::size_t kMaxMethod = 32;
constexpr std::size_t kMaxBlankBytes = 4;  // some clients end a body with an extra newline

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_token_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_character);
}
bool is_visible(char c) {
  return c > 0x20 && c < 0x7f;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  return text;
}

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The text before the next `mark`, or all of it; `rest` becomes the text after it.
std::string_view cut(std::string_view& rest, char mark) {
  const std::size_t at = rest.find(mark);
  const std::string_view item = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return item;
}

// Whether a comma-separated list, such as Connection's, contains `word`.
bool lists(std::string_view list, std::string_view word) {
  while (!list.empty())
    if (lower(trimmed(cut(list, ','))) == word) return true;
  return false;
}

}  // namespace

std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(16 * high + low);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string_view HttpRequest::field(std::string_view name) const {
  for (const auto& [key, value] : fields)
    if (key == name) return value;
  return "";
}

std::optional<std::string> HttpRequest::parameter(std::string_view name) const {
  std::string_view rest = query;
  while (!rest.empty()) {
    std::string_view value = cut(rest, '&');
    const std::string_view key = cut(value, '=');
    if (percent_decoded(key, true) == name)
      return percent_decoded(value, true).value_or(std::string(value));
  }
  return std::nullopt;
}

void HttpRequestParser::refuse(int status, std::string problem) {
  state_ = State::kRefused;
  status_ = status;
  problem_ = std::move(problem);
}

std::size_t HttpRequestParser::take(std::string_view bytes) {
  std::size_t taken = 0;
  if (state_ == State::kHeader) taken = take_header(bytes);
  if (state_ == State::kBody) taken += take_body(bytes.substr(taken));
  return taken;
}

std::size_t HttpRequestParser::take_header(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char byte = bytes[i];
    if (header_.empty() && (byte == '\r' || byte == '\n')) {
      if (++blank_bytes_ > kMaxBlankBytes) return refuse(400, "no request line"), i + 1;
      continue;
    }
    header_ += byte;
    if (byte == '\0') return refuse(400, "a NUL in the header"), i + 1;
    if (byte == '\n' && !header_.ends_with("\r\n"))
      return refuse(400, "a line that ends in LF without CR"), i + 1;
    if (header_.ends_with("\r\n\r\n")) return read_header(), i + 1;
    if (header_.size() >= limits_.header_bytes) {
      const bool in_target = header_.find('\n') == std::string::npos;
      return refuse(in_target ? 414 : 431, "the header is too long"), i + 1;
    }
  }
  return bytes.size();
}

void HttpRequestParser::read_header() {
  std::string_view rest = header_;
  bool is_first = true;
  for (std::size_t end; (end = rest.find("\r\n")) > 0; rest.remove_prefix(end + 2)) {
    const std::string_view line = rest.substr(0, end);
    if (!(is_first ? read_request_line(line) : read_field(line))) return;
    is_first = false;
  }
  if (check_host() && read_connection()) read_body_length();
  header_.clear();
  header_.shrink_to_fit();
}

bool HttpRequestParser::read_request_line(std::string_view line) {
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == last) return refuse(400, "no request line"), false;
  request_.method = line.substr(0, first);
  if (!is_token(request_.method) || request_.method.size() > kMaxMethod)
    return refuse(400, "no method"), false;
  return read_version(line.substr(last + 1)) &&
         read_target(line.substr(first + 1, last - first - 1));
}

bool HttpRequestParser::read_version(std::string_view version) {
  const bool is_http = version.size() == 8 && version.starts_with("HTTP/") &&
                       is_digit(version[5]) && version[6] == '.' && is_digit(version[7]);
  if (!is_http) return refuse(400, "no HTTP version"), false;
  if (version[5] != '1') return refuse(505, "only HTTP/1.0 and HTTP/1.1 are supported"), false;
  request_.minor_version = version[7] == '0' ? 0 : 1;
  return true;
}

bool HttpRequestParser::read_target(std::string_view target) {
  if (target.empty() || !std::all_of(target.begin(), target.end(), is_visible))
    return refuse(400, "no target"), false;
  constexpr std::string_view kScheme = "http://";
  if (lower(target.substr(0, kScheme.size())) == kScheme) {
    target.remove_prefix(kScheme.size());
    const std::size_t end = std::min(target.find_first_of("/?"), target.size());
    request_.host = target.substr(0, end);
    if (request_.host.empty()) return refuse(400, "an address without a host"), false;
    target.remove_prefix(end);
  } else if (target != "*" && !target.starts_with('/')) {
    return refuse(400, "no target"), false;
  }
  const auto path = percent_decoded(cut(target, '?'), false);
  request_.query = target;
  if (!path) return refuse(400, "a broken escape in the target"), false;
  request_.path = path->empty() ? "/" : *path;
  return true;
}

bool HttpRequestParser::read_field(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon)))
    return refuse(400, "a line of the header is not a field"), false;
  const std::string_view value = trimmed(line.substr(colon + 1));
  const auto is_control = [](char c) { return (c >= 0 && c < 0x20 && c != '\t') || c == 0x7f; };
  if (std::any_of(value.begin(), value.end(), is_control))
    return refuse(400, "a control character in the header"), false;
  if (request_.fields.size() >= limits_.fields)
    return refuse(431, "the header has too many fields"), false;
  request_.fields.emplace_back(lower(line.substr(0, colon)), value);
  return true;
}

bool HttpRequestParser::check_host() {
  const auto hosts = std::count_if(request_.fields.begin(), request_.fields.end(),
                                   [](const auto& field) { return field.first == "host"; });
  if (hosts > 1 || (hosts == 0 && request_.minor_version > 0))
    return refuse(400, "a request has one Host"), false;
  if (request_.host.empty()) request_.host = request_.field("host");
  return true;
}

bool HttpRequestParser::read_connection() {
  bool close = false, keep = request_.minor_version > 0;
  for (const auto& [name, value] : request_.fields) {
    if (name != "connection") continue;
    close = close || lists(value, "close");
    keep = keep || lists(value, "keep-alive");
  }
  request_.keep_alive = keep && !close;
  const std::string_view expected = request_.field("expect");
  if (expected.empty()) return true;
  if (lower(expected) != "100-continue") return refuse(417, "an unknown expectation"), false;
  expects_continue_ = request_.minor_version > 0;
  return true;
}

void HttpRequestParser::read_body_length() {
  std::size_t lengths = 0, codings = 0;
  for (const auto& [name, value] : request_.fields) {
    lengths += name == "content-length";
    codings += name == "transfer-encoding";
  }
  if (codings > 0) {
    // Requests with two lengths are used for request smuggling.
    if (lengths > 0 || codings > 1 || request_.minor_version == 0)
      return refuse(400, "the body's length is given twice");
    if (lower(request_.field("transfer-encoding")) != "chunked")
      return refuse(501, "an unknown transfer coding");
    part_ = BodyPart::kChunkSize;
  } else if (lengths > 1) {
    return refuse(400, "the body's length is given twice");
  } else if (lengths == 0 || !read_content_length(request_.field("content-length"))) {
    if (state_ != State::kRefused) state_ = State::kDone;
    return;
  }
  state_ = State::kBody;
}

// False if no body follows.
bool HttpRequestParser::read_content_length(std::string_view text) {
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit))
    return refuse(400, "the body's length is not a number"), false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), wanted_);
  if (error != std::errc() || wanted_ > limits_.body_bytes)
    return refuse(413, "the body is too long"), false;
  return wanted_ > 0;
}

std::size_t HttpRequestParser::take_body(std::string_view bytes) {
  std::size_t i = 0;
  while (i < bytes.size() && state_ == State::kBody) {
    if (part_ == BodyPart::kPlain || part_ == BodyPart::kChunk) {
      i += take_body_bytes(bytes.substr(i));
    } else if (take_line_byte(bytes[i++])) {
      end_chunk_line();
      line_.clear();
    }
  }
  return i;
}

std::size_t HttpRequestParser::take_body_bytes(std::string_view bytes) {
  const std::size_t taken = std::min(wanted_, bytes.size());
  request_.body.append(bytes.substr(0, taken));
  wanted_ -= taken;
  if (wanted_ == 0) {
    if (part_ == BodyPart::kPlain)
      state_ = State::kDone;
    else
      part_ = BodyPart::kChunkEnd;
  }
  return taken;
}

bool HttpRequestParser::take_line_byte(char byte) {
  if (++line_bytes_ > limits_.header_bytes)
    return refuse(431, "the lines of a chunked body are too long"), false;
  line_ += byte;
  if (byte != '\n') return false;
  if (!line_.ends_with("\r\n")) return refuse(400, "a line that ends in LF without CR"), false;
  line_.resize(line_.size() - 2);
  return true;
}

void HttpRequestParser::end_chunk_line() {
  if (part_ == BodyPart::kTrailer) {
    if (line_.empty()) state_ = State::kDone;  // trailer fields are dropped
    return;
  }
  if (part_ == BodyPart::kChunkEnd) {
    if (!line_.empty()) return refuse(400, "a chunk is longer than it says");
    line_bytes_ -= 2;  // part of the chunk: a body may have any number of them
    part_ = BodyPart::kChunkSize;
    return;
  }
  const char* const begin = line_.data();
  const auto [end, error] = std::from_chars(begin, begin + line_.size(), wanted_, 16);
  const std::string_view rest =
      trimmed(std::string_view(line_).substr(static_cast<std::size_t>(end - begin)));
  if (error == std::errc::invalid_argument || !(rest.empty() || rest.starts_with(';')))
    return refuse(400, "a chunk without a length");
  if (error != std::errc() || wanted_ > limits_.body_bytes - request_.body.size())
    return refuse(413, "the body is too long");
  if (wanted_ > 0) line_bytes_ -= std::min(line_bytes_, line_.size() + 2);
  part_ = wanted_ > 0 ? BodyPart::kChunk : BodyPart::kTrailer;
}

}  // namespace antisd::inline io
