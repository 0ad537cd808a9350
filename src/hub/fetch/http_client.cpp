#include "hub/fetch/http_client.h"

#include <array>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "hub/fetch/curl_library.h"

namespace antisd::inline hub {
namespace {

constexpr int kMaxRedirects = 8;
constexpr long kConnectSeconds = 20;
constexpr std::size_t kMaxHeaderBytes = 1 << 20;

std::string lower_ascii(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// Debian's libcurl looks for Debian's certificates; elsewhere they lie in other places.
std::string certificate_file() {
  for (const char* name : {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return value;
  constexpr std::array kPlaces = {"/etc/ssl/certs/ca-certificates.crt",
                                  "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
                                  "/etc/ssl/cert.pem"};
  std::error_code ignored;
  for (const char* place : kPlaces)
    if (std::filesystem::exists(place, ignored)) return place;
  return "";
}

struct FreeList {
  void operator()(curl_slist* list) const { CurlLibrary::get().slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

void append(HeaderList& list, const std::string& line) {
  curl_slist* longer = CurlLibrary::get().slist_append(list.get(), line.c_str());
  if (longer == nullptr) throw std::bad_alloc();
  list.release();
  list.reset(longer);
}

}  // namespace

std::string HttpAnswer::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

struct HttpClient::Request {
  std::string url;
  bool is_head = false;
  std::int64_t offset = 0;
  const Begin* begin = nullptr;  // download()
  const Sink* sink = nullptr;
};

struct HttpClient::State {
  HttpOptions options;
  std::function<bool()> stop;
  const CurlLibrary& library = CurlLibrary::get();
  CURL* curl = nullptr;

  // Of the request under way.
  HttpAnswer response;
  const Request* request = nullptr;
  bool begun = false, wanted = false, too_long = false;
  std::size_t header_bytes = 0;
  std::exception_ptr thrown;  // by the sink; exceptions do not pass through libcurl

  static std::size_t on_header(char* text, std::size_t, std::size_t size, void* self) {
    return static_cast<State*>(self)->take_header({text, size}) ? size : 0;
  }
  static std::size_t on_body(char* text, std::size_t, std::size_t size, void* self) {
    return static_cast<State*>(self)->take_body({text, size}) ? size : 0;
  }
  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<State*>(self)->stop() ? 1 : 0;
  }

  bool take_header(std::string_view line) {
    header_bytes += line.size();
    if (header_bytes > kMaxHeaderBytes) return false;
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r'))
      line.remove_suffix(1);
    const std::size_t colon = line.find(':');
    if (line.starts_with("HTTP/")) {
      response.headers.clear();  // after a 100 Continue
    } else if (colon != std::string_view::npos) {
      const std::size_t value = std::min(line.find_first_not_of(' ', colon + 1), line.size());
      response.headers[lower_ascii(std::string(line.substr(0, colon)))] = line.substr(value);
    }
    return true;
  }

  bool take_body(std::string_view bytes) {
    long status = 0;
    library.easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    response.status = static_cast<int>(status);
    if (request->sink == nullptr) {
      too_long = static_cast<std::int64_t>(response.body.size() + bytes.size()) > options.max_body;
      if (!too_long) response.body.append(bytes);
      return !too_long;
    }
    if (status != 200 && status != 206) return true;  // an error's text
    try {
      if (!begun) wanted = (*request->begin)(response);
      begun = true;
      if (wanted) (*request->sink)(std::as_bytes(std::span(bytes)));
      return wanted;
    } catch (...) {
      thrown = std::current_exception();
      return false;
    }
  }
};

std::string origin_of(const std::string& url) {
  const CurlLibrary& curl = CurlLibrary::get();
  CURLU* parsed = curl.url();
  std::string origin;
  if (parsed != nullptr && curl.url_set(parsed, CURLUPART_URL, url.c_str(), 0) == CURLUE_OK) {
    const auto part = [&](CURLUPart what, unsigned flags) {
      char* text = nullptr;
      std::string value;
      if (curl.url_get(parsed, what, &text, flags) == CURLUE_OK) value = text;
      curl.free(text);
      return lower_ascii(value);
    };
    const std::string scheme = part(CURLUPART_SCHEME, 0);
    if (scheme == "http" || scheme == "https") {
      origin = fmt::format("{}://{}:{}", scheme, part(CURLUPART_HOST, 0),
                           part(CURLUPART_PORT, CURLU_DEFAULT_PORT));
    }
  }
  curl.url_cleanup(parsed);
  return origin;
}

HttpClient::HttpClient(HttpOptions options, std::function<bool()> stop)
    : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
  state_->stop = std::move(stop);
  state_->curl = state_->library.easy_init();
  if (state_->curl == nullptr) throw RunError("libcurl cannot be started");
}

HttpClient::~HttpClient() {
  state_->library.easy_cleanup(state_->curl);
}

HttpAnswer HttpClient::perform(const Request& request) {
  State& state = *state_;
  CURL* curl = state.curl;
  const CurlLibrary& library = state.library;
  const auto set = [&](CURLoption option, auto value) {
    library.easy_setopt(curl, option, value);  // one that an old libcurl lacks is left out
  };
  state.response = {};
  state.response.url = request.url;
  state.request = &request;
  state.begun = state.wanted = state.too_long = false;
  state.header_bytes = 0;
  state.thrown = nullptr;
  library.easy_reset(curl);  // keeps connections open
  HeaderList headers;
  append(headers, "Accept-Encoding: identity");  // sizes and offsets are those of the file
  const std::string origin = origin_of(request.url);
  if (origin.empty()) throw RunError("not an http address", {.where = request.url});
  if (!state.options.token.empty() && origin == origin_of(state.options.endpoint))
    append(headers, "Authorization: Bearer " + state.options.token);
  const std::string certificates = certificate_file();
  if (!certificates.empty()) set(CURLOPT_CAINFO, certificates.c_str());
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTPHEADER, headers.get());
  set(CURLOPT_USERAGENT, state.options.user_agent.c_str());
  set(CURLOPT_NOBODY, request.is_head ? 1L : 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(state.options.silence_s));
  set(CURLOPT_HEADERFUNCTION, &State::on_header);
  set(CURLOPT_HEADERDATA, state_.get());
  set(CURLOPT_WRITEFUNCTION, &State::on_body);
  set(CURLOPT_WRITEDATA, state_.get());
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &State::on_progress);
  set(CURLOPT_XFERINFODATA, state_.get());
  const std::string range = fmt::format("{}-", request.offset);
  if (request.offset > 0) set(CURLOPT_RANGE, range.c_str());
  const CURLcode code = library.easy_perform(curl);
  if (state.thrown) std::rethrow_exception(state.thrown);
  if (code == CURLE_ABORTED_BY_CALLBACK) throw FetchStopped();
  if (state.too_long) throw RunError("the answer is too long", {.where = request.url});
  const bool refused = code == CURLE_WRITE_ERROR && state.begun && !state.wanted;
  if (code != CURLE_OK && !refused)
    throw ConnectionError(
        fmt::format("the connection failed: {}", library.easy_strerror(code)),
        {.where = origin, .remedy = "check the network; the same command goes on"});
  long status = 0;
  library.easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  state.response.status = static_cast<int>(status);
  char* location = nullptr;
  library.easy_getinfo(curl, CURLINFO_REDIRECT_URL, &location);
  if (location != nullptr) state.response.location = location;
  return std::move(state.response);
}

HttpAnswer HttpClient::follow(Request request) {
  for (int redirects = 0; redirects <= kMaxRedirects; ++redirects) {
    HttpAnswer response = perform(request);
    if (!response.is_redirect()) return response;
    const bool stored_elsewhere = !response.header("x-linked-etag").empty();
    const bool leaves = origin_of(response.location) != origin_of(state_->options.endpoint);
    const bool names_content = leaves && !response.header("etag").empty();
    if (request.is_head && (stored_elsewhere || names_content)) return response;
    if (request.url.starts_with("https:") && !response.location.starts_with("https:")) {
      throw RunError(fmt::format("it sends us to {}, which is not https", response.location),
                     {.where = request.url});
    }
    request.url = response.location;
  }
  throw RunError("too many redirects", {.where = request.url});
}

HttpAnswer HttpClient::get(const std::string& url) {
  return follow({.url = url});
}

HttpAnswer HttpClient::head(const std::string& url) {
  return follow({.url = url, .is_head = true});
}

HttpAnswer HttpClient::download(const std::string& url, std::int64_t offset, const Begin& begin,
                                const Sink& sink) {
  return follow({.url = url, .offset = offset, .begin = &begin, .sink = &sink});
}

}  // namespace antisd::inline hub
