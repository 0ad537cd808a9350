#include "reward/context_command.h"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "core/error.h"
#include "core/utf8.h"
#include "io/process/pipes.h"
#include "io/process/supervised_command.h"

namespace antisd::inline reward {
namespace {

using ContextClock = std::chrono::steady_clock;

constexpr std::size_t kLongestAnswer = 16 << 20;  // bytes of a line
constexpr int kSkippedLines = 1000;               // at most, before an answer
constexpr int kEndWait = 100;                     // milliseconds for the status of a process

std::string beginning_of(const std::string& line) {
  return replace_invalid_utf8(line.substr(0, 100));  // the cut may be inside a character
}

// The answer to request `id`; nothing for a line that is to be skipped.
std::optional<ContextAnswer> read_context_line(const std::string& line, std::int64_t id) {
  Json answer;
  try {
    answer = parse_json(line, "context.command");
  } catch (const InputError&) {
    return std::nullopt;  // a log line
  }
  if (answer.is_object() && answer.contains("id") && answer["id"] != id) return std::nullopt;
  if (!answer.is_object() || !answer.contains("context"))
    return ContextAnswer{.reason = "wrote something other than an answer: " + beginning_of(line)};
  if (answer["context"].is_null()) return ContextAnswer();
  if (!answer["context"].is_string())
    return ContextAnswer{.reason = "gave a context that is not text: " + beginning_of(line)};
  return ContextAnswer{.text = answer["context"].get<std::string>()};
}

}  // namespace

// One process. After a failure it is unusable: it may answer late.
class ContextCommand::Worker {
 public:
  explicit Worker(const std::string& command) {
    auto [ours, theirs] = make_socket_pair(SOCK_STREAM);
    channel_ = std::move(ours);
    process_.emplace(command, std::move(theirs));
    fcntl(channel_.get(), F_SETFL, O_NONBLOCK);
  }

  ContextAnswer ask(const std::string& line, std::int64_t id, ContextClock::time_point deadline) {
    for (std::size_t sent = 0; sent < line.size();) {
      const ssize_t n = send(channel_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
      if (n > 0) sent += static_cast<std::size_t>(n);
      if (n >= 0 || errno == EINTR) continue;
      if (errno != EAGAIN) return {.reason = describe_end()};
      if (const std::string problem = wait(POLLOUT, deadline); !problem.empty())
        return {.reason = problem};
    }
    for (int skipped = 0; skipped < kSkippedLines;) {
      if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
        const std::string text = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        if (const auto answer = read_context_line(text, id)) return *answer;
        ++skipped;
        continue;
      }
      if (buffer_.size() > kLongestAnswer) return {.reason = "writes a line without an end"};
      if (const std::string problem = wait(POLLIN, deadline); !problem.empty())
        return {.reason = problem};
      char part[1 << 16];
      const ssize_t n = recv(channel_.get(), part, sizeof part, 0);
      if (n > 0)
        buffer_.append(part, static_cast<std::size_t>(n));
      else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        return {.reason = describe_end()};
    }
    return {.reason = "writes lines without an answer"};
  }

  std::string first_errors() { return process_->first_errors(); }

 private:
  // "" if the channel is ready. A program that failed has ended, even if a process that it started
  // holds its output open.
  std::string wait(short events, ContextClock::time_point deadline) {
    while (true) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - ContextClock::now())
              .count();
      if (left <= 0) return "does not answer in time";
      pollfd waits[] = {{channel_.get(), events, 0}, {process_->link(), POLLIN, 0}};
      if (poll(waits, 2, static_cast<int>(std::min<std::int64_t>(left + 1, 1 << 30))) < 0) continue;
      if (waits[0].revents != 0) return "";
      if (waits[1].revents == 0) continue;
      process_->first_errors();  // also receives the status
      if (process_->wait_status(0).value_or(0) != 0) return describe_end();
    }
  }

  std::string describe_end() {
    const std::optional<int> status = process_->wait_status(kEndWait);
    if (!status) return "closed its output";
    return WIFSIGNALED(*status) ? fmt::format("was killed by signal {}", WTERMSIG(*status))
                                : fmt::format("ended with status {}", WEXITSTATUS(*status));
  }

  UniqueFd channel_;
  std::optional<SupervisedCommand> process_;
  std::string buffer_;
};

Json context_request(const Problem& problem, const Response& response) {
  const Verdict& verdict = response.verdict;
  Json request = {{"problem", prompt_text(problem)},
                  {"answer", problem.answer},
                  {"response", response.text},
                  {"reward", verdict.reward ? Json(*verdict.reward) : Json(nullptr)},
                  {"correct", verdict.correct()},
                  {"reason", verdict.reason},
                  {"row_id", problem.id}};
  if (verdict.total > 0) request.update({{"passed", verdict.passed}, {"total", verdict.total}});
  if (problem.row.is_object()) {
    for (const auto& [column, value] : problem.row.items())
      request.emplace(column, Json(value));  // ours win
  }
  return request;
}

ContextCommand::ContextCommand(ContextCommandOptions options)
    : options_(std::move(options)),
      pool_((options_.workers > 0 ? options_.workers : available_threads()) - 1) {
  start_supervision();
}

ContextCommand::~ContextCommand() = default;

std::unique_ptr<ContextCommand::Worker> ContextCommand::acquire() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Worker> worker = std::move(idle_.back());
      idle_.pop_back();
      return worker;
    }
  }
  return std::make_unique<Worker>(options_.command);
}

ContextAnswer ContextCommand::ask_one(Json request, std::string* errors) {
  std::int64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = next_id_++;
  }
  request["id"] = id;
  const auto deadline =
      ContextClock::now() + std::chrono::duration_cast<ContextClock::duration>(
                                std::chrono::duration<double>(std::min(options_.timeout_s, 1e9)));
  ContextAnswer answer;
  try {
    std::unique_ptr<Worker> worker = acquire();
    answer = worker->ask(to_json_line(request) + "\n", id, deadline);
    if (!answer.reason.empty() && errors != nullptr) *errors = worker->first_errors();
    if (answer.reason.empty()) {
      const std::lock_guard lock(mutex_);
      idle_.push_back(std::move(worker));
    }
  } catch (const RunError& error) {
    answer.reason = "cannot be started: " + error.message();
  }
  if (!answer.reason.empty()) answer.reason = "context.command " + answer.reason;
  return answer;
}

std::vector<ContextAnswer> ContextCommand::ask(std::span<const Json> requests) {
  std::vector<ContextAnswer> answers(requests.size());
  pool_.parallel_for(requests.size(), [&](std::size_t i) { answers[i] = ask_one(requests[i]); });
  return answers;
}

void ContextCommand::probe(const Json& request) {
  std::string errors;
  const ContextAnswer answer = ask_one(request, &errors);
  if (answer.reason.empty()) return;
  throw RunError(
      fmt::format("the program `{}` gives no context: {}{}", options_.command, answer.reason,
                  errors.empty() ? "; it wrote nothing to standard error"
                                 : "; its standard error begins with\n    " +
                                       replace_invalid_utf8(errors.substr(0, 500)) + "\n "),
      {.where = "context.command",
       .remedy = fmt::format(
           "try it by hand: it reads a line like {{\"id\": 1, \"problem\": \"..\", \"response\": "
           "\"..\", \"correct\": false}} and within context.timeout_s = {} seconds writes one like "
           "{{\"context\": \"..\"}} and flushes it",
           options_.timeout_s)});
}

}  // namespace antisd::inline reward
