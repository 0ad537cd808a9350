// A supervised process that is asked by lines and answers by lines, each within a time limit.
//
//   LineProcess process("python3 my_reward.py", "reward.command");
//   std::string problem;
//   const std::optional<std::string> answer = process.ask("{\"id\": 1}\n", deadline, problem);
//
// A failure is a text that begins with `name`, the key that chose the process. The process is then
// unusable: it may answer late.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "io/process/supervised_command.h"
#include "io/unique_fd.h"

namespace antisd::inline reward {

class LineProcess {
 public:
  using Clock = std::chrono::steady_clock;

  // RunError if it cannot be started. The command is for /bin/sh.
  LineProcess(const std::string& command, std::string name);

  // The answering line, or nothing with the reason in `problem`. `line` ends with a newline.
  std::optional<std::string> ask(const std::string& line, Clock::time_point deadline,
                                 std::string& problem);
  // The next line.
  std::optional<std::string> read_line(Clock::time_point deadline, std::string& problem);

  // Waits a moment for lines that no request asked for.
  void settle();
  // A line that was written before a request asked for it, if one has arrived.
  std::optional<std::string> unasked_line();

  // The first lines of its standard error, indented, as the end of a message.
  std::string quoted_errors();
  // Its status as from wait(2), if it has ended or does so within that time.
  std::optional<int> status(int milliseconds = 100);

  static Clock::time_point after(double seconds);

 private:
  enum class Wait { kReady, kLate, kEnded };
  Wait wait(short events, Clock::time_point deadline);
  std::optional<std::string> take_line();
  std::optional<std::string> give_up(std::string& problem, const std::string& text) const;
  std::string describe_end();

  std::string name_;
  UniqueFd channel_;
  std::optional<SupervisedCommand> process_;
  std::string buffer_;
};

}  // namespace antisd::inline reward
