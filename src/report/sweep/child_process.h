// A child process in its own process group, so that terminal signals do not reach it. It gets
// SIGTERM if this process dies.
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
  // Standard output and error are appended to `output`; standard input is empty. RunError if the
  // system fails; a program that cannot be run exits with 127.
  ChildProcess(const std::vector<std::string>& arguments, const std::filesystem::path& output);
  ~ChildProcess();  // stops it if it still runs, and waits
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Nothing while it runs; 128 + N if signal N ended it. Never waits.
  std::optional<int> exit_status();
  void stop();                      // SIGTERM; harmless if it has ended
  std::int64_t peak_bytes() const;  // peak resident memory so far; 0 if it has ended

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
};

}  // namespace antisd::inline report
