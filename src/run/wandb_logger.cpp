#include "run/wandb_logger.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "core/error.h"
#include "core/utf8.h"
#include "io/process/pipes.h"
#include "io/process/python_command.h"
#include "run/run_files.h"
#include "run/wandb_program.h"

namespace antisd::inline run {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCheckMilliseconds = 60'000, kExitMilliseconds = 3'000, kStatusMilliseconds = 100;
constexpr std::size_t kMaxAnswer = 1 << 16;
constexpr int kAbsent = 3;  // exit status of kQuestion

// A folder named wandb on the path would be a package without a file: wandb puts its runs into one.
constexpr const char* kQuestion = R"(
import importlib.util, sys
sys.path[:] = [folder for folder in sys.path if folder]
found = importlib.util.find_spec("wandb")
sys.exit(0 if found and found.origin else 3)
)";

int milliseconds_until(Clock::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 1 << 30));
}

Json values_json(const MetricSet& metrics) {
  Json values = Json::object();
  for (const Metric& metric : metrics.values())
    if (std::isfinite(metric.value)) values[metric.name] = metric.value;
  return values;
}

}  // namespace

void check_wandb() {
  auto [ours, theirs] = make_socket_pair(SOCK_STREAM);
  // Quietly: a shell that finds no such program would tell of it too.
  SupervisedCommand question("exec 2>/dev/null; " + python_command(python_name(), kQuestion),
                             std::move(theirs));
  const std::optional<int> status = question.wait_status(kCheckMilliseconds);
  const int code = status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
  if (code == 0) return;
  const std::string python = python_name();
  const bool runs = !is_not_runnable(code);
  throw InputError(
      code == kAbsent ? fmt::format("{} has no package wandb", python)
      : runs          ? fmt::format("{} does not work, so wandb cannot be used", python)
                      : fmt::format("wandb needs Python, and {} cannot be run", python),
      {.where = "record.loggers",
       .remedy = fmt::format("{}name a Python that has it in ANTISD_PYTHON, or take wandb out of "
                             "record.loggers",
                             runs ? fmt::format("`{} -m pip install wandb`, ", python) : "")});
}

WandbLogger::WandbLogger(WandbStart start, WandbVoice voice)
    : start_(std::move(start)), voice_(std::move(voice)) {
  namespace fs = std::filesystem;
  const WandbConfig& config = start_.config;
  const fs::path directory = fs::absolute(start_.directory);
  const Json first = {{"start",
                       {{"dir", directory.string()},
                        {"memory", (directory / kWandbFile).string()},
                        {"metrics", (directory / kMetricsFile).string()},
                        {"step", start_.step},
                        {"project", config.project},
                        {"entity", config.entity},
                        {"name", config.name},
                        {"group", config.group},
                        {"tags", config.tags},
                        {"config", std::move(start_.settings)}}}};
  queue_.push_back(to_json_line(first) + "\n");
  queued_bytes_ = queue_.back().size();
  try {
    auto [ours, theirs] = make_socket_pair(SOCK_STREAM);
    process_.emplace(python_command(python_name(), wandb_program()), std::move(theirs));
    channel_ = std::move(ours);
  } catch (const Error& error) {
    stop(error.message());
  }
  exchange();
}

void WandbLogger::log(std::int64_t step, const MetricSet& metrics) {
  add_row(step, metrics, false);
}

void WandbLogger::amend(std::int64_t step, const MetricSet& more) {
  add_row(step, more, true);
}

void WandbLogger::add_row(std::int64_t step, const MetricSet& metrics, bool amends) {
  if (!process_) return;
  Json row = {{"step", step}, {"values", values_json(metrics)}};
  if (amends) row["amend"] = true;
  std::string line = to_json_line(row) + "\n";
  exchange();
  if (queued_bytes_ + line.size() > start_.max_queued_bytes) {
    if (dropped_++ == 0) {
      voice_.warn(fmt::format(
          "wandb does not take its rows: from step {} on they are dropped until it does. "
          "metrics.jsonl has them",
          step));
    }
    return;
  }
  queued_bytes_ += line.size();
  queue_.push_back(std::move(line));
  exchange();
}

void WandbLogger::exchange() {
  if (process_) receive();
  if (process_) send_queued();
  if (process_ && process_->wait_status(0)) {
    receive();  // why it ended
    if (process_ && !is_done_) stop(how_it_ended(0));
  }
}

void WandbLogger::send_queued() {
  while (!queue_.empty()) {
    const std::string_view rest = std::string_view(queue_.front()).substr(sent_bytes_);
    const ssize_t sent =
        ::send(channel_.get(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      receive();  // why it closed its end
      if (process_ && !is_done_) stop(how_it_ended(kStatusMilliseconds));
      return;
    }
    sent_bytes_ += static_cast<std::size_t>(sent);
    if (sent_bytes_ < queue_.front().size()) continue;
    queued_bytes_ -= queue_.front().size();
    queue_.pop_front();
    sent_bytes_ = 0;
  }
}

void WandbLogger::receive() {
  char part[4096];
  for (ssize_t size; process_;) {
    size = ::recv(channel_.get(), part, sizeof part, MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size == 0 && !is_done_) stop(how_it_ended(kStatusMilliseconds));
    if (size <= 0) return;
    received_.append(part, static_cast<std::size_t>(size));
    for (std::size_t end; process_ && (end = received_.find('\n')) != std::string::npos;) {
      const std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      handle(line);
    }
    if (process_ && received_.size() > kMaxAnswer) stop("it writes what is not an answer");
  }
}

void WandbLogger::handle(const std::string& line) {
  try {
    const Json answer = parse_json(line, "wandb");
    if (answer.contains("error"))
      return stop(replace_invalid_utf8(answer["error"].get<std::string>()));
    if (answer.contains("done")) is_done_ = true;
    if (!answer.contains("ready")) return;
    const Json& ready = answer["ready"];
    folder_ = ready["dir"].get<std::string>();
    std::string text = "wandb: run " + ready["id"].get<std::string>();
    if (ready["offline"].get<bool>())
      text += fmt::format(", offline; `wandb sync {}` sends it", folder_);
    else if (ready["url"].is_string())
      text += " at " + ready["url"].get<std::string>();
    voice_.info(text);
  } catch (const std::exception&) {
    stop("it writes what is not an answer");
  }
}

void WandbLogger::stop(const std::string& why) {
  process_.reset();
  channel_.reset();
  queue_.clear();
  queued_bytes_ = sent_bytes_ = 0;
  voice_.warn(
      fmt::format("wandb: {}. The run goes on without it; metrics.jsonl has every row", why));
}

std::string WandbLogger::how_it_ended(int milliseconds) {
  const std::optional<int> status = process_->wait_status(milliseconds);
  if (!status) return "it closed its input";
  return WIFSIGNALED(*status) ? fmt::format("it was killed by signal {}", WTERMSIG(*status))
                              : fmt::format("it ended with status {}", WEXITSTATUS(*status));
}

void WandbLogger::finish(const std::string& reason, std::int64_t step) {
  if (!process_) return;
  const int exit_code = reason == "finished" ? 0 : reason == "stopped by a signal" ? 130 : 1;
  queue_.push_back(to_json_line(Json{{"end",
                                      {{"reason", replace_invalid_utf8(reason)},
                                       {"last_step", step},
                                       {"exit_code", exit_code}}}}) +
                   "\n");
  queued_bytes_ += queue_.back().size();
  auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(start_.config.finish_s));
  bool was_done = false;
  while (process_ && !process_->wait_status(0) && Clock::now() < deadline) {
    exchange();
    if (!process_) break;
    if (is_done_ && !was_done) {  // its last threads and processes get a moment
      deadline = Clock::now() + std::chrono::milliseconds(kExitMilliseconds);
      was_done = true;
    }
    const short events = static_cast<short>(POLLIN | (queue_.empty() ? 0 : POLLOUT));
    pollfd waits[] = {{is_done_ ? -1 : channel_.get(), events, 0}, {process_->link(), POLLIN, 0}};
    ::poll(waits, 2, milliseconds_until(deadline));
  }
  exchange();
  if (dropped_ > 0)
    voice_.warn(fmt::format("wandb lacks {} rows, which it did not take in time", dropped_));
  if (process_ && !is_done_) {
    voice_.warn(fmt::format(
        "wandb was not done after {} s (record.wandb.finish_s) and was ended{}",
        start_.config.finish_s,
        folder_.empty() ? std::string()
                        : fmt::format("; `wandb sync {}` sends what it has there", folder_)));
  }
  process_.reset();
  channel_.reset();
}

}  // namespace antisd::inline run
