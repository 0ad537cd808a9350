#include "dist/launch.h"

#include <algorithm>
#include <bitset>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dist/line_relay.h"
#include "dist/rank_starter.h"
#include "dist/signal_pipe.h"

namespace antisd::inline dist {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr Seconds kSpare(5);          // beyond silence_s, for a last message and a file's end
constexpr Seconds kAtOnce(2);         // after a second signal
constexpr Seconds kAfterTerm(3);      // from SIGTERM to SIGKILL
constexpr Seconds kAfterKill(30);     // a process may hang in the kernel: a dead disk or GPU
constexpr Seconds kDescendants(10);   // until no descendant is left
constexpr double kLongestWait = 1e6;  // milliseconds
constexpr int kLaunchFailed = 1, kLaunchStopped = 130;

void launcher_says(const std::string& text) {
  fmt::print(stderr, "antisd: {}\n", text);
}

std::string killed_text(int rank, int number) {
  const char* reason = "somebody else sent it";
  if (number == SIGKILL)
    reason =
        "the system does that when memory runs out: see `dmesg`, and use fewer processes or "
        "smaller batches";
  for (const int crash : {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGSYS, SIGTRAP})
    if (number == crash) reason = "internal error, please report it";
  return fmt::format("rank {} was killed by signal {} ({}); {}", rank, number, strsignal(number),
                     reason);
}

// The processes whose parent is this one: /proc/PID/stat is "PID (NAME) STATE PARENT ...".
std::vector<pid_t> own_children() {
  std::vector<pid_t> children;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    pid_t pid = 0, parent = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc()) continue;
    std::ifstream file(entry.path() / "stat");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const std::size_t after_name = text.rfind(')');
    if (after_name == std::string::npos || after_name + 4 >= text.size()) continue;
    std::from_chars(text.data() + after_name + 4, text.data() + text.size(), parent);
    if (parent == ::getpid()) children.push_back(pid);
  }
  return children;
}

// Kills and collects every child of this process. As their subreaper it then gets theirs, so each
// round ends a generation. A child keeps its number until it is waited for, which only this process
// does: the signal cannot reach another one.
void end_descendants() {
  const Clock::time_point last =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(kDescendants);
  while (true) {
    pid_t ended;
    while ((ended = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (ended < 0 && errno == ECHILD) return;
    if (Clock::now() > last) break;
    for (const pid_t child : own_children())
      ::kill(child, SIGKILL);
    ::poll(nullptr, 0, 2);  // milliseconds
  }
  launcher_says(
      fmt::format("processes that cannot be killed are left: {}", fmt::join(own_children(), ", ")));
}

struct LaunchedRank {
  int rank;
  pid_t pid;
  LineRelay output;
  bool is_running = true;
  bool told_to_end = false;  // by this launcher, after a failure or a second signal
};

class Launcher {
 public:
  explicit Launcher(const LaunchOptions& options) : options_(options), starter_(options.processes) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  ~Launcher() {
    if (any_running()) {  // something was thrown
      kill_running();
      end_descendants();
    }
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  int run() {
    for (int rank = 0; rank < options_.processes; ++rank) {
      StartedRank started = starter_.start(rank, signals_);
      ranks_.push_back({rank, started.pid,
                        LineRelay(std::move(started.output), fmt::format("rank {}: ", rank))});
    }
    while (any_running()) {
      wait();
      for (LaunchedRank& rank : ranks_)
        rank.output.relay();
      for (const int number : signals_.take())
        if (number != SIGCHLD) pass_on(number);
      collect();
      end_late_ranks();
    }
    end_descendants();
    for (LaunchedRank& rank : ranks_)
      rank.output.finish();
    return status_;
  }

 private:
  enum class Ending { kNot, kByThemselves, kBySigterm, kBySigkill };

  bool any_running() const { return std::ranges::any_of(ranks_, &LaunchedRank::is_running); }

  // For a signal, the end of a rank, something printed, or the next step of an ending.
  void wait() const {
    std::vector<pollfd> waits = {{signals_.descriptor(), POLLIN, 0}};
    for (const LaunchedRank& rank : ranks_)
      waits.push_back({rank.output.descriptor(), POLLIN, 0});
    int milliseconds = -1;  // for ever
    if (ending_ != Ending::kNot)
      milliseconds = static_cast<int>(
          std::clamp(1e3 * Seconds(next_step_ - Clock::now()).count() + 1, 0.0, kLongestWait));
    ::poll(waits.data(), waits.size(), milliseconds);
  }

  void pass_on(int number) {
    passed_on_.set(static_cast<std::size_t>(number));
    for (const LaunchedRank& rank : ranks_)
      if (rank.is_running) ::kill(rank.pid, number);
    if (++signals_passed_ == 2) begin_ending(kAtOnce);
  }

  void collect() {
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto rank = std::ranges::find(ranks_, pid, &LaunchedRank::pid);
      if (rank != ranks_.end()) note_end(*rank, status);  // otherwise one that a rank left behind
    }
  }

  void note_end(LaunchedRank& rank, int wait_status) {
    rank.is_running = false;
    rank.output.relay();
    const int number = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
    const bool was_asked = rank.told_to_end || passed_on_[static_cast<std::size_t>(number)];
    int status = number == 0 ? WEXITSTATUS(wait_status) : kLaunchFailed;
    if (was_asked) status = kLaunchStopped;
    if (status != 0 && status != kLaunchStopped) {
      if (number != 0 && !std::exchange(has_said_killed_, true))
        launcher_says(killed_text(rank.rank, number));
      begin_ending(Seconds(options_.silence_s) + kSpare);
    }
    if (weight(status) > weight(status_)) status_ = status;
  }

  // The status with the largest weight is the run's; of equal ones the first.
  static int weight(int status) {
    if (status == 0) return 0;
    if (status == kLaunchStopped) return 1;
    return status == kLaunchFailed ? 2 : 3;
  }

  void begin_ending(Seconds grace) {
    const Clock::time_point at = Clock::now() + std::chrono::duration_cast<Clock::duration>(grace);
    if (ending_ > Ending::kByThemselves || (ending_ != Ending::kNot && next_step_ <= at)) return;
    ending_ = Ending::kByThemselves;
    next_step_ = at;
  }

  void end_late_ranks() {
    if (ending_ == Ending::kNot || Clock::now() < next_step_ || !any_running()) return;
    if (ending_ == Ending::kByThemselves) {
      for (LaunchedRank& rank : ranks_) {
        rank.told_to_end = true;
        if (rank.is_running) ::kill(rank.pid, SIGTERM);
      }
      advance(Ending::kBySigterm, kAfterTerm);
    } else if (ending_ == Ending::kBySigterm) {
      launcher_says(fmt::format("{} did not end and had to be killed", running_text()));
      kill_running();
      advance(Ending::kBySigkill, kAfterKill);
    } else {
      launcher_says(
          fmt::format("{} cannot be killed; the process hangs in the kernel", running_text()));
      for (LaunchedRank& rank : ranks_)
        rank.is_running = false;
    }
  }

  void advance(Ending ending, Seconds until_next) {
    ending_ = ending;
    next_step_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(until_next);
  }

  void kill_running() const {
    for (const LaunchedRank& rank : ranks_) {
      if (!rank.is_running) continue;
      ::kill(-rank.pid, SIGKILL);
      ::kill(rank.pid, SIGKILL);  // it may not have its group yet
    }
  }

  std::string running_text() const {
    std::vector<int> running;
    for (const LaunchedRank& rank : ranks_)
      if (rank.is_running) running.push_back(rank.rank);
    return fmt::format("{} {}", running.size() == 1 ? "rank" : "ranks", fmt::join(running, ", "));
  }

  const LaunchOptions options_;
  SignalPipe signals_;
  RankStarter starter_;
  std::vector<LaunchedRank> ranks_;
  std::bitset<128> passed_on_;  // by number; 0 is no signal
  int signals_passed_ = 0;
  Ending ending_ = Ending::kNot;
  Clock::time_point next_step_;  // of the ending
  bool has_said_killed_ = false;
  int status_ = 0;
};

}  // namespace

int launch(const LaunchOptions& options) {
  return Launcher(options).run();
}

}  // namespace antisd::inline dist
