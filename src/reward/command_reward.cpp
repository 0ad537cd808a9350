#include "reward/command_reward.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "core/check.h"
#include "core/error.h"
#include "core/utf8.h"
#include "io/system_error.h"
#include "reward/pipes.h"

extern char** environ;

namespace antisd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxLine = 16 << 20;
constexpr int kMaxStrayLines = 1000;  // answers to requests that were given up

[[noreturn]] void run_shell(const char* command, int channel) {
  setsid();  // so that the shell and what it started can be ended together
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  // Standard error stays the user's.
  if (dup2(channel, 0) < 0 || dup2(channel, 1) < 0) _exit(127);
  const char* arguments[] = {"/bin/sh", "-c", command, nullptr};
  execve("/bin/sh", const_cast<char**>(arguments), environ);
  _exit(127);
}

}  // namespace

// One process. Any failure is a text; the worker is then of no more use.
class CommandReward::Worker {
 public:
  explicit Worker(const std::string& command) {
    auto [ours, theirs] = make_socket_pair(SOCK_STREAM);
    channel_ = std::move(ours);
    pid_ = fork();
    if (pid_ < 0) throw_failed("cannot start a process for reward.command", errno);
    if (pid_ == 0) run_shell(command.c_str(), theirs.get());
    fcntl(channel_.get(), F_SETFL, O_NONBLOCK);
  }
  ~Worker() {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);  // it may not have become a group of its own yet
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The line that answers, or the reason why there is none.
  std::optional<std::string> ask(const std::string& line, Clock::time_point deadline,
                                 std::string& problem) {
    for (std::size_t sent = 0; sent < line.size();) {
      const ssize_t n = send(channel_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
      if (n > 0)
        sent += static_cast<std::size_t>(n);
      else if (n < 0 && errno == EAGAIN) {
        if (!wait(POLLOUT, deadline))
          return give_up(problem, "reward.command does not read its requests in time");
      } else if (errno != EINTR) {
        return give_up(problem, describe_end());
      }
    }
    return read_line(deadline, problem);
  }

  std::optional<std::string> read_line(Clock::time_point deadline, std::string& problem) {
    while (true) {
      if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      if (buffer_.size() > kMaxLine)
        return give_up(problem, "reward.command writes a line without an end");
      if (!wait(POLLIN, deadline))
        return give_up(problem, "reward.command does not answer in time");
      char part[1 << 16];
      const ssize_t n = recv(channel_.get(), part, sizeof part, 0);
      if (n > 0)
        buffer_.append(part, static_cast<std::size_t>(n));
      else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        return give_up(problem, describe_end());
    }
  }

 private:
  bool wait(short events, Clock::time_point deadline) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd one = {channel_.get(), events, 0};
    return poll(&one, 1, static_cast<int>(std::min<std::int64_t>(left + 1, 1 << 30))) != 0;
  }

  std::optional<std::string> give_up(std::string& problem, std::string text) {
    problem = std::move(text);
    return std::nullopt;
  }

  std::string describe_end() {
    int status = 0;
    siginfo_t info = {};
    // Closing the channel comes before the end of the process; it gets a moment to be told apart.
    for (int i = 0; i < 20 && info.si_pid == 0; ++i) {
      if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) break;
      if (info.si_pid == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    status = info.si_status;
    if (info.si_pid == 0) return "reward.command closed its output";
    return info.si_code == CLD_EXITED
               ? fmt::format("reward.command ended with status {}", status)
               : fmt::format("reward.command was killed by signal {}", status);
  }

  UniqueFd channel_;
  pid_t pid_ = 0;
  std::string buffer_;
};

CommandReward::CommandReward(CommandRewardOptions options) : options_(std::move(options)) {
  if (options_.command.empty())
    throw InputError("there is no command",
                     {.where = "reward.command", .remedy = "name a program that writes rewards"});
  if (!(options_.timeout_s > 0) || options_.workers < 0)
    throw InputError("timeout_s must be above 0 and workers at least 0",
                     {.where = "reward", .remedy = "mend reward.timeout_s or reward.workers"});
  if (options_.workers == 0)
    options_.workers = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

CommandReward::~CommandReward() = default;

std::unique_ptr<CommandReward::Worker> CommandReward::acquire() {
  std::unique_lock lock(mutex_);
  free_.wait(lock, [&] { return out_ < options_.workers; });
  ++out_;
  if (idle_.empty()) return nullptr;
  std::unique_ptr<Worker> worker = std::move(idle_.back());
  idle_.pop_back();
  return worker;
}

void CommandReward::give_back(std::unique_ptr<Worker> worker) {
  {
    const std::lock_guard lock(mutex_);
    --out_;
    if (worker) idle_.push_back(std::move(worker));
  }
  free_.notify_one();
}

std::optional<CommandScore> read_score(const std::string& line, std::int64_t id, bool& garbage) {
  CommandScore score;
  Json answer;
  try {
    answer = parse_json(line, "reward.command");
  } catch (const InputError&) {
  }
  // Not JSON, but what Python's and JavaScript's mathematics end in.
  if (answer.is_null() && line.find("\"reward\"") != std::string::npos &&
      (line.find("NaN") != std::string::npos || line.find("Infinity") != std::string::npos)) {
    score.error = true;
    score.reason = "reward.command gave a reward that is not a number: " +
                   replace_invalid_utf8(line.substr(0, 100));
    return score;
  }
  garbage = !answer.is_object() || !answer.contains("id") || !answer.contains("reward");
  if (garbage) {
    score.reason = "reward.command wrote something else than an answer: " +
                   replace_invalid_utf8(line.substr(0, 100));
    return score;
  }
  if (answer["id"] != id) return std::nullopt;
  if (answer.contains("reason") && answer["reason"].is_string())
    score.reason = answer["reason"].get<std::string>();
  const Json& reward = answer["reward"];
  if (reward.is_null()) {
    if (score.reason.empty()) score.reason = "reward.command gave no reward";
    return score;
  }
  if (!reward.is_number() || !(reward.get<double>() >= 0 && reward.get<double>() <= 1)) {
    score.error = true;
    score.reason = "reward.command gave a reward outside of [0, 1]: " + reward.dump().substr(0, 50);
    return score;
  }
  score.reward = reward.get<double>();
  return score;
}

CommandScore CommandReward::score(const Json& request) {
  ANTISD_CHECK(request.is_object());
  std::unique_ptr<Worker> worker = acquire();
  CommandScore score;
  try {
    if (!worker) worker = std::make_unique<Worker>(options_.command);
    Json row = request;
    {
      const std::lock_guard lock(mutex_);
      row["id"] = next_id_++;
    }
    const std::int64_t id = row["id"];
    const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                             std::chrono::duration<double>(options_.timeout_s));
    std::optional<std::string> line = worker->ask(to_json_line(row) + "\n", deadline, score.reason);
    bool garbage = false;
    for (int stray = 0; line; ++stray) {
      if (const auto found = read_score(*line, id, garbage)) {
        score = *found;
        break;
      }
      line = stray < kMaxStrayLines ? worker->read_line(deadline, score.reason) : std::nullopt;
    }
    if (!line || garbage) worker.reset();
  } catch (const RunError& error) {
    score.reason = error.message();
    worker.reset();
  } catch (...) {
    give_back(nullptr);
    throw;
  }
  give_back(std::move(worker));
  return score;
}

}  // namespace antisd
