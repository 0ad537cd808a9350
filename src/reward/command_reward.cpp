#include "reward/command_reward.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "core/check.h"
#include "core/error.h"
#include "core/utf8.h"
#include "io/process/pipes.h"
#include "io/process/supervised_command.h"

namespace antisd::inline reward {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxLine = 16 << 20;
constexpr int kMaxStrayLines = 1000;  // answers to abandoned requests, and log lines
constexpr int kEndMilliseconds = 100;
constexpr int kSettleMilliseconds = 50;
constexpr std::size_t kShownErrorLines = 5;

std::string shortened(const std::string& line) {
  return replace_invalid_utf8(line.substr(0, 100));
}

}  // namespace

// One process. A failure is a text; the worker is then unusable.
class CommandReward::Worker {
 public:
  explicit Worker(const std::string& command) {
    auto [ours, theirs] = make_socket_pair(SOCK_STREAM);
    channel_ = std::move(ours);
    process_.emplace(command, std::move(theirs));
    fcntl(channel_.get(), F_SETFL, O_NONBLOCK);
  }

  // The answering line, or the reason why there is none.
  std::optional<std::string> ask(const std::string& line, Clock::time_point deadline,
                                 std::string& problem) {
    for (std::size_t sent = 0; sent < line.size();) {
      const ssize_t n = send(channel_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
      if (n > 0)
        sent += static_cast<std::size_t>(n);
      else if (n < 0 && errno == EAGAIN) {
        const Wait found = wait(POLLOUT, deadline);
        if (found == Wait::kLate)
          return give_up(problem, "reward.command does not read its requests in time");
        if (found == Wait::kEnded) return give_up(problem, describe_end());
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
      const Wait found = wait(POLLIN, deadline);
      if (found == Wait::kLate) return give_up(problem, "reward.command does not answer in time");
      if (found == Wait::kEnded) return give_up(problem, describe_end());
      char part[1 << 16];
      const ssize_t n = recv(channel_.get(), part, sizeof part, 0);
      if (n > 0)
        buffer_.append(part, static_cast<std::size_t>(n));
      else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        return give_up(problem, describe_end());
    }
  }

  // Waits a moment for lines that no request asked for.
  void settle() {
    pollfd wait{channel_.get(), POLLIN, 0};
    if (buffer_.empty()) poll(&wait, 1, kSettleMilliseconds);
  }

  // A line that was written before a request asked for it, if one has arrived.
  std::optional<std::string> unasked_line() {
    char part[1 << 12];
    for (ssize_t n; buffer_.size() <= kMaxLine &&
                    (n = recv(channel_.get(), part, sizeof part, MSG_DONTWAIT)) > 0;)
      buffer_.append(part, static_cast<std::size_t>(n));
    const std::size_t end = buffer_.find('\n');
    if (end == std::string::npos) return std::nullopt;
    std::string line = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);
    return line;
  }

  // Whether the process answers with an id as it did before, or without as it did before.
  bool is_consistent(const RewardLine& line) {
    if (line.kind != RewardLine::kAnswer && line.kind != RewardLine::kOther) return true;
    if (!line.has_id) return true;
    if (!gives_ids_) gives_ids_ = line.has_id;
    return gives_ids_ == line.has_id;
  }

  bool answers_in_order() const { return gives_ids_ == false; }

  std::string first_errors() { return process_->first_errors(); }

  bool has_settled = false;  // its first answer without an id was seen to be the only one

 private:
  enum class Wait { kReady, kLate, kEnded };

  // A program that failed has ended, even if a process that it started holds its output open.
  Wait wait(short events, Clock::time_point deadline) {
    while (true) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (left <= 0) return Wait::kLate;
      pollfd waits[] = {{channel_.get(), events, 0}, {process_->link(), POLLIN, 0}};
      if (poll(waits, 2, static_cast<int>(std::min<std::int64_t>(left + 1, 1 << 30))) < 0) continue;
      if (waits[0].revents != 0) return Wait::kReady;
      if (waits[1].revents == 0) continue;
      process_->first_errors();  // also receives the status
      if (process_->wait_status(0).value_or(0) != 0) return Wait::kEnded;
    }
  }

  std::optional<std::string> give_up(std::string& problem, std::string text) {
    problem = std::move(text);
    return std::nullopt;
  }

  std::string describe_end() {
    // The channel closes before the process ends; wait a moment for its status.
    const std::optional<int> status = process_->wait_status(kEndMilliseconds);
    if (!status) return "reward.command closed its output";
    return WIFSIGNALED(*status)
               ? fmt::format("reward.command was killed by signal {}", WTERMSIG(*status))
               : fmt::format("reward.command ended with status {}", WEXITSTATUS(*status));
  }

  UniqueFd channel_;
  std::optional<SupervisedCommand> process_;
  std::string buffer_;
  std::optional<bool> gives_ids_;  // in its answers; unknown before the first
};

CommandReward::CommandReward(CommandRewardOptions options) : options_(std::move(options)) {
  if (options_.command.empty())
    throw InputError("there is no command",
                     {.where = "reward.command", .remedy = "name a program that writes rewards"});
  if (!(options_.timeout_s > 0) || options_.workers < 0)
    throw InputError("timeout_s must be above 0 and workers at least 0",
                     {.where = "reward", .remedy = "correct reward.timeout_s or reward.workers"});
  if (options_.workers == 0)
    options_.workers = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  start_supervision();
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

RewardLine read_reward_line(const std::string& text, std::int64_t id) {
  RewardLine line;
  Json answer;
  try {
    answer = parse_json(text, "reward.command");
  } catch (const InputError&) {
    // Not JSON, but the result of non-finite arithmetic in Python and JavaScript.
    const bool not_finite =
        text.find("\"reward\"") != std::string::npos &&
        (text.find("NaN") != std::string::npos || text.find("Infinity") != std::string::npos);
    line.kind = not_finite ? RewardLine::kAnswer : RewardLine::kLog;
    line.verdict.error = not_finite;
    line.verdict.reason = "reward.command gave a reward that is not a number: " + shortened(text);
    return line;
  }
  Verdict& verdict = line.verdict;
  if (!answer.is_object() || !answer.contains("reward")) {
    line.kind = RewardLine::kGarbage;
    verdict.reason = "reward.command wrote something other than an answer: " + shortened(text);
    return line;
  }
  line.has_id = answer.contains("id");
  if (*line.has_id && answer["id"] != id) {
    line.kind = RewardLine::kOther;
    return line;
  }
  if (answer.contains("reason") && answer["reason"].is_string())
    verdict.reason = answer["reason"].get<std::string>();
  const Json& reward = answer["reward"];
  if (reward.is_null()) {
    if (verdict.reason.empty()) verdict.reason = "reward.command gave no reward";
  } else if (!reward.is_number() || !(reward.get<double>() >= 0 && reward.get<double>() <= 1)) {
    verdict.error = true;
    verdict.reason =
        "reward.command gave a reward outside of [0, 1]: " + reward.dump().substr(0, 50);
  } else {
    verdict.reward = reward.get<double>();
  }
  return line;
}

namespace {

// The first lines of a program's standard error, for a message.
std::string quoted_errors(const std::string& errors) {
  std::string text;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < kShownErrorLines && begin < errors.size(); ++i) {
    const std::size_t end = std::min(errors.find('\n', begin), errors.size());
    text += "\n    " +
            replace_invalid_utf8(errors.substr(begin, std::min<std::size_t>(end - begin, 200)));
    begin = end + 1;
  }
  return text.empty() ? "; it wrote nothing to standard error"
                      : "; its standard error begins with" + text + "\n ";
}

}  // namespace

// Whether nothing but log lines was written since the last answer. An answer without an id would
// be taken for that of the next request.
bool CommandReward::is_idle(Worker& worker, Verdict& verdict) {
  if (!worker.answers_in_order()) return true;
  for (int stray = 0; stray < kMaxStrayLines; ++stray) {
    const std::optional<std::string> text = worker.unasked_line();
    if (!text) return true;
    const RewardLine line = read_reward_line(*text, /*id=*/0);
    if (line.kind == RewardLine::kLog) {
      note_log_line(shortened(*text));
      continue;
    }
    verdict.reason = "reward.command writes more lines than it gets requests: " + shortened(*text);
    return false;
  }
  return true;
}

// The answer to one request, or nothing with the reason in `verdict`.
bool CommandReward::ask(Worker& worker, const Json& request, Verdict& verdict) {
  if (!is_idle(worker, verdict)) return false;
  Json row = request;
  {
    const std::lock_guard lock(mutex_);
    row["id"] = next_id_++;
  }
  const std::int64_t id = row["id"];
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(options_.timeout_s));
  std::string log;
  std::optional<std::string> text = worker.ask(to_json_line(row) + "\n", deadline, verdict.reason);
  for (int stray = 0; text && stray < kMaxStrayLines; ++stray) {
    const RewardLine line = read_reward_line(*text, id);
    if (!worker.is_consistent(line)) {
      verdict.reason = "reward.command answers some requests with an id and some without";
      return false;
    }
    if (line.kind == RewardLine::kAnswer || line.kind == RewardLine::kGarbage) {
      // A program that writes two answers a request does so from its first one on.
      if (worker.answers_in_order() && !std::exchange(worker.has_settled, true)) {
        worker.settle();
        if (!is_idle(worker, verdict)) return false;
      }
      verdict = line.verdict;
      return line.kind == RewardLine::kAnswer;
    }
    if (line.kind == RewardLine::kLog) note_log_line(log = shortened(*text));
    text = worker.read_line(deadline, verdict.reason);
  }
  if (text) verdict.reason = "reward.command writes lines without an answer";
  if (!log.empty()) verdict.reason += fmt::format("; its last line that is not JSON: {}", log);
  return false;
}

void CommandReward::note_log_line(const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (log_line_said_) return;
  log_line_said_ = true;
  warnings_.push_back(
      fmt::format("reward.command writes lines to standard output that are not JSON; they are "
                  "skipped, write them to standard error: {}",
                  line));
}

std::vector<std::string> CommandReward::take_warnings() {
  const std::lock_guard lock(mutex_);
  return std::exchange(warnings_, {});
}

Verdict CommandReward::grade(const Json& request) {
  ANTISD_CHECK(request.is_object());
  std::unique_ptr<Worker> worker = acquire();
  Verdict verdict;
  try {
    if (!worker) worker = std::make_unique<Worker>(options_.command);
    if (!ask(*worker, request, verdict)) worker.reset();
  } catch (const RunError& error) {
    verdict.reason = error.message();
    worker.reset();
  } catch (...) {
    give_back(nullptr);
    throw;
  }
  give_back(std::move(worker));
  return verdict;
}

void CommandReward::probe(const Json& request) {
  std::unique_ptr<Worker> worker = acquire();
  Verdict verdict;
  bool answered = false;
  std::string errors;
  try {
    answered = worker && ask(*worker, request, verdict);
    if (!answered) {  // no process yet, or one that ended while idle
      worker = std::make_unique<Worker>(options_.command);
      answered = ask(*worker, request, verdict);
      if (!answered) errors = quoted_errors(worker->first_errors());
    }
  } catch (...) {
    give_back(nullptr);
    throw;
  }
  give_back(answered ? std::move(worker) : nullptr);
  if (answered && !verdict.error) return;
  throw RunError(
      fmt::format("the reward program `{}` does not grade: {}{}", options_.command, verdict.reason,
                  errors),
      {.where = "reward.command",
       .remedy = fmt::format(
           "try it by hand: it reads a line like {{\"id\": 1, \"problem\": \"..\", \"answer\": "
           "\"..\", \"response\": \"\"}} and within reward.timeout_s = {} seconds writes one like "
           "{{\"reward\": 0.5}} and flushes it",
           options_.timeout_s)});
}

}  // namespace antisd::inline reward
