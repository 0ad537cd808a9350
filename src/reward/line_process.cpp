#include "reward/line_process.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "core/utf8.h"
#include "io/process/pipes.h"

namespace antisd::inline reward {
namespace {

constexpr std::size_t kMaxLine = 16 << 20;
constexpr int kSettleMilliseconds = 50;
constexpr std::size_t kShownErrorLines = 5, kShownErrorBytes = 200;

}  // namespace

LineProcess::LineProcess(const std::string& command, std::string name) : name_(std::move(name)) {
  auto [ours, theirs] = make_socket_pair(SOCK_STREAM);
  channel_ = std::move(ours);
  process_.emplace(command, std::move(theirs));
  fcntl(channel_.get(), F_SETFL, O_NONBLOCK);
}

LineProcess::Clock::time_point LineProcess::after(double seconds) {
  constexpr double kNever = 1e9;  // more would not fit a time point
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(std::min(seconds, kNever)));
}

std::optional<std::string> LineProcess::ask(const std::string& line, Clock::time_point deadline,
                                            std::string& problem) {
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t n = send(channel_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (n > 0)
      sent += static_cast<std::size_t>(n);
    else if (n < 0 && errno == EAGAIN) {
      const Wait found = wait(POLLOUT, deadline);
      if (found == Wait::kLate) return give_up(problem, "does not read its requests in time");
      if (found == Wait::kEnded) return give_up(problem, describe_end());
    } else if (errno != EINTR) {
      return give_up(problem, describe_end());
    }
  }
  return read_line(deadline, problem);
}

std::optional<std::string> LineProcess::take_line() {
  const std::size_t end = buffer_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  return line;
}

std::optional<std::string> LineProcess::read_line(Clock::time_point deadline,
                                                  std::string& problem) {
  while (true) {
    if (std::optional<std::string> line = take_line()) return line;
    if (buffer_.size() > kMaxLine) return give_up(problem, "writes a line without an end");
    const Wait found = wait(POLLIN, deadline);
    if (found == Wait::kLate) return give_up(problem, "does not answer in time");
    if (found == Wait::kEnded) return give_up(problem, describe_end());
    char part[1 << 16];
    const ssize_t n = recv(channel_.get(), part, sizeof part, 0);
    if (n > 0)
      buffer_.append(part, static_cast<std::size_t>(n));
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
      return give_up(problem, describe_end());
  }
}

void LineProcess::settle() {
  pollfd wait{channel_.get(), POLLIN, 0};
  if (buffer_.empty()) poll(&wait, 1, kSettleMilliseconds);
}

std::optional<std::string> LineProcess::unasked_line() {
  char part[1 << 12];
  for (ssize_t n; buffer_.size() <= kMaxLine &&
                  (n = recv(channel_.get(), part, sizeof part, MSG_DONTWAIT)) > 0;)
    buffer_.append(part, static_cast<std::size_t>(n));
  return take_line();
}

std::string LineProcess::quoted_errors() {
  const std::string& errors = process_->first_errors();
  std::string text;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < kShownErrorLines && begin < errors.size(); ++i) {
    const std::size_t end = std::min(errors.find('\n', begin), errors.size());
    text += "\n    " +
            replace_invalid_utf8(errors.substr(begin, std::min(end - begin, kShownErrorBytes)));
    begin = end + 1;
  }
  return text.empty() ? "; it wrote nothing to standard error"
                      : "; its standard error begins with" + text + "\n ";
}

std::optional<int> LineProcess::status(int milliseconds) {
  return process_->wait_status(milliseconds);
}

// A program that failed has ended, even if a process that it started holds its output open.
LineProcess::Wait LineProcess::wait(short events, Clock::time_point deadline) {
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

std::optional<std::string> LineProcess::give_up(std::string& problem,
                                                const std::string& text) const {
  problem = name_ + " " + text;
  return std::nullopt;
}

std::string LineProcess::describe_end() {
  // The channel closes before the process ends; wait a moment for its status.
  const std::optional<int> status = this->status();
  if (!status) return "closed its output";
  return WIFSIGNALED(*status) ? fmt::format("was killed by signal {}", WTERMSIG(*status))
                              : fmt::format("ended with status {}", WEXITSTATUS(*status));
}

}  // namespace antisd::inline reward
