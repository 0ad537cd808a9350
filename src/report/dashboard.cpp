#include "report/dashboard.h"

#include <atomic>
#include <charconv>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "core/error.h"
#include "report/http.h"
#include "report/report_page.h"
#include "report/run_finder.h"
#include "report/samples.h"

namespace antisd {
namespace {

namespace fs = std::filesystem;

constexpr int kThreads = 32;
constexpr int kBacklog = 256;
constexpr std::int64_t kBytesALook = 8 << 20;  // of a file; keeps the others' wait short
constexpr int kLooksBetweenSearches = 3;
constexpr const char* kCookie = "antisd_token";

std::string random_hex() {
  std::array<unsigned char, 16> bytes = {};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw RunError("the system gives no random numbers");
  std::string text;
  for (const unsigned char byte : bytes)
    text += fmt::format("{:02x}", byte);
  return text;
}

std::int64_t number_of_parameter(const httplib::Request& request, const char* name) {
  const std::string text = request.get_param_value(name);
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : -1;
}

// "localhost:8484" -> "localhost", "[::1]:8484" -> "::1"
std::string host_of(const std::string& header) {
  if (header.starts_with('[')) return header.substr(1, header.find(']') - 1);
  return header.substr(0, header.find(':'));
}

std::string cookie_of(const httplib::Request& request) {
  const std::string header = request.get_header_value("Cookie");
  const std::string mark = std::string(kCookie) + "=";
  for (std::size_t begin = 0; begin < header.size();) {
    const std::size_t end = std::min(header.find(';', begin), header.size());
    std::string_view part = std::string_view(header).substr(begin, end - begin);
    while (part.starts_with(' '))
      part.remove_prefix(1);
    if (part.starts_with(mark)) return std::string(part.substr(mark.size()));
    begin = end + 1;
  }
  return "";
}

// As a provider: the library would compress plain content, at a second for a megabyte.
void answer(httplib::Response& response, std::string body, const char* type) {
  const auto text = std::make_shared<const std::string>(std::move(body));
  response.set_content_provider(text->size(), type,
                                [text](std::size_t offset, std::size_t length, auto& sink) {
                                  return sink.write(text->data() + offset, length);
                                });
}

void refuse(httplib::Response& response, int status, const char* text) {
  response.status = status;
  answer(response, text, "text/plain; charset=utf-8");
}

void add_common_headers(httplib::Response& response, const std::string& policy) {
  response.set_header("Content-Security-Policy", policy);
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("X-Frame-Options", "DENY");
  response.set_header("Referrer-Policy", "no-referrer");
  response.set_header("Cache-Control", "no-store");
}

// It travels in addresses and cookies.
void check_token(const std::string& token) {
  constexpr const char* kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";
  if (token.find_first_not_of(kAllowed) == std::string::npos) return;
  throw InputError("a token is made of letters, digits and - _ . ~",
                   {.where = "--token", .remedy = "leave it out, and one is made up"});
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

bool is_loopback(const std::string& host) {
  // "127.evil.example" is a name that anybody may point anywhere.
  const bool is_v4 = host.find_first_not_of("0123456789.") == std::string::npos;
  return host == "localhost" || host == "::1" || (is_v4 && host.starts_with("127."));
}

bool equal_in_constant_time(const std::string& a, const std::string& b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^
                  static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  return difference == 0;
}

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
    bind();
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

  void serve() {
    serving_ = true;
    if (!stopping_) http_.listen_after_bind();
    serving_ = false;
  }

  void stop() {
    stopping_ = true;
    // The library forgets a stop() that comes before its loop has begun.
    while (serving_ && !http_.is_running())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    http_.stop();
  }

  int port() const { return port_; }
  std::size_t runs() const {
    const std::shared_lock lock(mutex_);
    return runs_.runs().size();
  }

  std::string url() const {
    const bool is_v6 = options_.host.find(':') != std::string::npos;
    return fmt::format("http://{}:{}/{}", is_v6 ? "[" + options_.host + "]" : options_.host, port_,
                       options_.token.empty() ? "" : "?token=" + options_.token);
  }

 private:
  void set_up() {
    http_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    http_.set_keep_alive_max_count(1);  // a browser that waits must not hold a thread
    http_.set_payload_max_length(1 << 12);
    // Without the library's SO_REUSEPORT, which would let two dashboards share a port.
    http_.set_socket_options([this](int socket) {
      socket_ = socket;
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    http_.set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          return is_allowed(request, response) ? httplib::Server::HandlerResponse::Unhandled
                                               : httplib::Server::HandlerResponse::Handled;
        });
    http_.Get("/", [this](const auto& request, auto& response) { send_page(request, response); });
    http_.Get("/api/update",
              [this](const auto& request, auto& response) { send_update(request, response); });
    http_.Get("/api/samples",
              [this](const auto& request, auto& response) { send_samples(request, response); });
    http_.set_exception_handler([](const auto&, httplib::Response& response, std::exception_ptr) {
      refuse(response, 500, "the dashboard failed on this request\n");
    });
  }

  void bind() {
    const bool bound = options_.port == 0
                           ? (port_ = http_.bind_to_any_port(options_.host)) > 0
                           : http_.bind_to_port(options_.host, port_ = options_.port);
    if (!bound) {
      throw RunError("cannot listen there: the port is taken, or the address is not this machine's",
                     {.where = fmt::format("{}:{}", options_.host, options_.port),
                      .remedy = "--port 0 takes a free port"});
    }
    listen(socket_, kBacklog);  // the library's 5 are too few for fifty browsers
  }

  // Answers what is not allowed.
  bool is_allowed(const httplib::Request& request, httplib::Response& response) const {
    add_common_headers_unless_page(request, response);
    if (is_loopback(options_.host)) {
      const std::string host = host_of(request.get_header_value("Host"));
      if (host != options_.host && !is_loopback(host)) {
        refuse(response, 403, "this dashboard answers to loopback names alone\n");
        return false;
      }
    }
    if (options_.token.empty() || bears_token(request)) return true;
    refuse(response, 401, "open the address that the dashboard printed, with its token\n");
    return false;
  }

  static void add_common_headers_unless_page(const httplib::Request& request,
                                             httplib::Response& response) {
    if (request.path != "/") add_common_headers(response, "default-src 'none'");
  }

  bool bears_token(const httplib::Request& request) const {
    const std::string bearer = "Bearer " + options_.token;
    return equal_in_constant_time(request.get_header_value("Authorization"), bearer) ||
           equal_in_constant_time(cookie_of(request), options_.token) ||
           equal_in_constant_time(request.get_param_value("token"), options_.token);
  }

  void send_page(const httplib::Request& request, httplib::Response& response) const {
    if (request.has_param("token")) {  // out of the address bar, into a cookie
      response.set_header("Set-Cookie", fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict",
                                                    kCookie, options_.token));
      add_common_headers(response, "default-src 'none'");
      response.set_redirect("/", 303);
      return;
    }
    const std::string nonce = random_hex();
    add_common_headers(
        response, fmt::format("default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; "
                              "connect-src 'self'; img-src data:; base-uri 'none'; "
                              "form-action 'none'; frame-ancestors 'none'",
                              nonce));
    answer(response, live_html("Runs in " + root_.filename().string(), nonce),
           "text/html; charset=utf-8");
  }

  void send_update(const httplib::Request& request, httplib::Response& response) const {
    // Whoever talked to an earlier server counts in its versions.
    const bool knows_us = request.get_param_value("server") == id_;
    const std::int64_t since = knows_us ? number_of_parameter(request, "since") : 0;
    std::string update;
    {
      const std::shared_lock lock(mutex_);
      update = runs_.update(since);
    }
    answer(response,
           fmt::format("{{\"server\":\"{}\",{}{}", id_, knows_us ? "" : "\"reset\":true,",
                       std::string_view(update).substr(1)),
           "application/json");
  }

  void send_samples(const httplib::Request& request, httplib::Response& response) const {
    std::optional<Folder> folder;
    {
      const std::shared_lock lock(mutex_);
      const RunReader* run = runs_.find(request.get_param_value("run"));
      if (run != nullptr) folder = run->folder();
    }
    const std::int64_t step = number_of_parameter(request, "step");
    if (!folder || step < 0) return refuse(response, 404, "no such run or step\n");
    answer(response, to_json_line(read_samples(*folder, step)), "application/json");
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
        // Out of memory or descriptors: what is shown stays, the next look may succeed.
      }
    }
  }

  DashboardOptions options_;
  fs::path root_;
  Folder folder_;
  std::string id_;
  RunSet runs_;
  mutable std::shared_mutex mutex_;  // of runs_
  httplib::Server http_;
  int socket_ = -1;
  int port_ = 0;
  std::thread watcher_;
  std::mutex wake_mutex_;
  std::condition_variable wake_;
  bool ending_ = false;
  std::atomic<bool> serving_ = false, stopping_ = false;
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

}  // namespace antisd
