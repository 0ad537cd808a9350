// A program that this one started: it has a process group of its own, so that a key on the terminal
// does not reach it, and it gets SIGTERM when we die.
//
//   ChildProcess child({"build/antisd", "train", "run.toml"}, "console.txt");
//   while (!child.exit_status()) wait_a_little();
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace antisd::inline report {

class ChildProcess {
 public:
  // Standard output and error are appended to `output`; standard input is empty. RunError where the
  // system refuses; a program that cannot be run exits with 127.
  ChildProcess(const std::vector<std::string>& arguments, const std::filesystem::path& output);
  ~ChildProcess();  // one that still runs is asked to stop and waited for
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Nothing while it runs; 128 + N where signal N ended it. Never waits.
  std::optional<int> exit_status();
  void stop();                      // SIGTERM; harmless where it has ended
  std::int64_t peak_bytes() const;  // of resident memory so far; 0 where it has ended

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
};

}  // namespace antisd::inline report
