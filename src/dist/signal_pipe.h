// The signals of the launcher as bytes of a pipe, which it can wait for beside other pipes.
//
//   SignalPipe signals;
//   for (const int number : signals.take()) send(number);
#pragma once

#include <array>
#include <csignal>
#include <vector>

#include "io/unique_fd.h"

namespace antisd::inline dist {

// Catches SIGCHLD and the signals that stop a run while it lives, SIGHUP unless it was ignored
// (nohup), and ignores SIGPIPE. Only one at a time.
class SignalPipe {
 public:
  SignalPipe();  // RunError
  ~SignalPipe();
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;

  int descriptor() const { return read_end_.get(); }
  std::vector<int> take();  // the signals since the last call, without waiting

  // What the program did on these signals before. Safe after fork().
  void restore_former() const;

 private:
  static constexpr std::array kCaught = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD, SIGPIPE};
  UniqueFd read_end_, write_end_;
  std::array<struct sigaction, kCaught.size()> former_ = {};
};

}  // namespace antisd::inline dist
