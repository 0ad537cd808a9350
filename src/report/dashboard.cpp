#include "report/dashboard.h"

#include <array>
#include <charconv>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include <fmt/format.h>
#include <sys/random.h>

#include "core/error.h"
#include "io/http/access.h"
#include "io/http/server.h"
#include "report/report_page.h"
#include "report/run_finder.h"
#include "report/samples.h"

namespace antisd::inline report {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxBody = 4 << 10;      // requests have no body
constexpr std::int64_t kBytesALook = 8 << 20;  // per file; keeps the delay for other runs short
constexpr int kLooksBetweenSearches = 3;
constexpr const char* kCookie = "antisd_token";

std::string random_hex() {
  std::array<unsigned char, 16> bytes = {};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw RunError("the system has no random numbers");
  std::string text;
  for (const unsigned char byte : bytes)
    text += fmt::format("{:02x}", byte);
  return text;
}

std::int64_t number_of_parameter(const HttpRequest& request, const char* name) {
  const std::string text = request.parameter(name).value_or("");
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : -1;
}

std::string cookie_of(const HttpRequest& request) {
  const std::string_view header = request.field("cookie");
  const std::string mark = std::string(kCookie) + "=";
  for (std::size_t begin = 0; begin < header.size();) {
    const std::size_t end = std::min(header.find(';', begin), header.size());
    std::string_view part = header.substr(begin, end - begin);
    while (part.starts_with(' '))
      part.remove_prefix(1);
    if (part.starts_with(mark)) return std::string(part.substr(mark.size()));
    begin = end + 1;
  }
  return "";
}

// Of every answer; the page has its own policy.
HttpFields common_fields() {
  return {{"Content-Security-Policy", "default-src 'none'"},
          {"X-Content-Type-Options", "nosniff"},
          {"X-Frame-Options", "DENY"},
          {"Referrer-Policy", "no-referrer"},
          {"Cache-Control", "no-store"}};
}

// The token is used in addresses and cookies.
void check_token(const std::string& token) {
  constexpr const char* kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";
  if (token.find_first_not_of(kAllowed) == std::string::npos) return;
  throw InputError("a token consists of letters, digits and - _ . ~",
                   {.where = "--token", .remedy = "leave it out, and one is generated"});
}

fs::path existing_folder(const fs::path& folder) {
  std::error_code error;
  fs::path canonical = fs::canonical(folder, error);
  if (error || !fs::is_directory(canonical, error)) {
    throw InputError(
        "no such folder",
        {.where = folder.string(), .remedy = "name the folder that holds the run directories"});
  }
  return canonical;
}

}  // namespace

class Dashboard::Server {
 public:
  explicit Server(DashboardOptions options)
      : options_(std::move(options)),
        root_(existing_folder(options_.folder)),
        folder_(root_, {.boundary = root_}),
        id_(random_hex()),
        runs_(options_.compare) {
    check_token(options_.token);
    if (options_.token.empty() && !is_loopback(options_.host)) options_.token = random_hex();
    find();
    while (runs_.refresh(std::int64_t{64} << 20)) {
    }
    set_up();
    watcher_ = std::thread([this] { watch(); });
  }

  ~Server() {
    {
      const std::lock_guard lock(wake_mutex_);
      ending_ = true;
    }
    wake_.notify_all();
    watcher_.join();
  }

  void serve() { http_->serve(); }
  void stop() { http_->stop(); }
  int port() const { return http_->port(); }
  std::size_t runs() const {
    const std::shared_lock lock(mutex_);
    return runs_.runs().size();
  }

  std::string url() const {
    return fmt::format("http://{}/{}", authority_of(options_.host, port()),
                       options_.token.empty() ? "" : "?token=" + options_.token);
  }

 private:
  void set_up() {
    try {
      http_.emplace(HttpServerOptions{.host = options_.host,
                                      .port = options_.port,
                                      .limits = {.body_bytes = kMaxBody},
                                      .fields = common_fields()});
    } catch (const RunError& error) {
      throw RunError(error.problem(),
                     {.where = error.context().where, .remedy = "--port 0 takes a free port"});
    }
    http_->guard([this](const HttpRequest& request) { return refusal_of(request); });
    http_->route("GET", "/", [this](const HttpRequest& request) { return page(request); });
    http_->route("GET", "/api/update",
                 [this](const HttpRequest& request) { return update(request); });
    http_->route("GET", "/api/samples",
                 [this](const HttpRequest& request) { return samples(request); });
  }

  // The answer to a request that is not allowed.
  std::optional<HttpResponse> refusal_of(const HttpRequest& request) const {
    if (is_loopback(options_.host)) {
      const std::string host = host_of(request.host);
      if (host != options_.host && !is_loopback(host))
        return HttpResponse::text(403, "this dashboard answers only to loopback names\n");
    }
    if (options_.token.empty() || bears_token(request)) return std::nullopt;
    return HttpResponse::text(401, "open the address that the dashboard printed, with its token\n");
  }

  bool bears_token(const HttpRequest& request) const {
    const std::string bearer = "Bearer " + options_.token;
    return equal_in_constant_time(std::string(request.field("authorization")), bearer) ||
           equal_in_constant_time(cookie_of(request), options_.token) ||
           equal_in_constant_time(request.parameter("token").value_or(""), options_.token);
  }

  HttpResponse page(const HttpRequest& request) const {
    if (request.parameter("token")) {  // move it from the address bar to a cookie
      return {.status = 303,
              .fields = {{"Location", "/"},
                         {"Set-Cookie", fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict",
                                                    kCookie, options_.token)}}};
    }
    const std::string nonce = random_hex();
    return {.type = "text/html; charset=utf-8",
            .fields = {{"Content-Security-Policy",
                        fmt::format(
                            "default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; "
                            "connect-src 'self'; img-src data:; base-uri 'none'; "
                            "form-action 'none'; frame-ancestors 'none'",
                            nonce)}},
            .body = live_html("Runs in " + root_.filename().string(), nonce)};
  }

  HttpResponse update(const HttpRequest& request) const {
    // A client of an earlier server has that server's version numbers.
    const bool knows_us = request.parameter("server") == id_;
    const std::int64_t since = knows_us ? number_of_parameter(request, "since") : 0;
    std::string update;
    {
      const std::shared_lock lock(mutex_);
      update = runs_.update(since);
    }
    return {.type = "application/json",
            .body = fmt::format("{{\"server\":\"{}\",{}{}", id_, knows_us ? "" : "\"reset\":true,",
                                std::string_view(update).substr(1))};
  }

  HttpResponse samples(const HttpRequest& request) const {
    std::optional<Folder> folder;
    {
      const std::shared_lock lock(mutex_);
      const RunReader* run = runs_.find(request.parameter("run").value_or(""));
      if (run != nullptr) folder = run->folder();
    }
    const std::int64_t step = number_of_parameter(request, "step");
    if (!folder || step < 0) return HttpResponse::text(404, "no such run or step\n");
    return {.type = "application/json", .body = to_json_line(read_samples(*folder, step))};
  }

  void find() {
    const std::vector<FoundRun> found = find_runs(folder_);
    const std::unique_lock lock(mutex_);
    const auto is_at = [](const fs::path& path) {
      return [&path](const auto& run) { return run.folder.path() == path; };
    };
    runs_.remove_if([&](const RunReader& run) {
      return std::none_of(found.begin(), found.end(), is_at(run.folder().path()));
    });
    for (const FoundRun& run : found) {
      const auto& known = runs_.runs();
      if (std::none_of(known.begin(), known.end(), [&](const RunSet::Entry& entry) {
            return entry.reader->folder().path() == run.folder.path();
          }))
        runs_.add(run.name, run.folder);
    }
  }

  void watch() {
    for (int look = 1;; ++look) {
      {
        std::unique_lock lock(wake_mutex_);
        const std::chrono::duration<double> pause(options_.look_seconds);
        if (wake_.wait_for(lock, pause, [this] { return ending_; })) return;
      }
      try {
        if (look % kLooksBetweenSearches == 0) find();
        const std::unique_lock lock(mutex_);
        runs_.refresh(kBytesALook);
      } catch (const std::exception&) {
        // Out of memory or descriptors: keep what is shown; the next look may succeed.
      }
    }
  }

  DashboardOptions options_;
  fs::path root_;
  Folder folder_;
  std::string id_;
  RunSet runs_;
  mutable std::shared_mutex mutex_;  // of runs_
  std::optional<HttpServer> http_;  // its threads use everything above; the watcher uses none of it
  std::thread watcher_;
  std::mutex wake_mutex_;
  std::condition_variable wake_;
  bool ending_ = false;
};

Dashboard::Dashboard(DashboardOptions options)
    : server_(std::make_unique<Server>(std::move(options))) {}
Dashboard::~Dashboard() = default;
int Dashboard::port() const {
  return server_->port();
}
std::string Dashboard::url() const {
  return server_->url();
}
std::size_t Dashboard::runs() const {
  return server_->runs();
}
void Dashboard::serve() {
  server_->serve();
}
void Dashboard::stop() {
  server_->stop();
}

}  // namespace antisd::inline report
