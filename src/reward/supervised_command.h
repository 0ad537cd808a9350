// A command of the user's and everything that it starts, ended together.
//
//   auto [ours, theirs] = make_socket_pair(SOCK_STREAM);
//   SupervisedCommand command("python3 reward.py", std::move(theirs));  // its standard streams
//   command.wait_status(100);  // how it ended, where it has
//   command.first_errors();    // the beginning of what it wrote to standard error
//
// A keeper process stands between: what the command starts, also in sessions and groups of its own,
// becomes the keeper's child when its parent dies (PR_SET_CHILD_SUBREAPER). The keeper kills and
// waits for all of it when this object goes, and when this process ends in whatever way, SIGKILL
// too: it sees its link close. That takes no privileges, but /proc; without it only the command's
// process group is ended. Standard error is handed on to this process's.
#pragma once

#include <optional>
#include <string>

#include "io/unique_fd.h"

namespace antisd::inline reward {

class SupervisedCommand {
 public:
  // `channel` becomes its standard input and output. RunError where it cannot be started.
  SupervisedCommand(const std::string& command, UniqueFd channel);
  ~SupervisedCommand();  // ends it and waits
  SupervisedCommand(const SupervisedCommand&) = delete;
  SupervisedCommand& operator=(const SupervisedCommand&) = delete;

  // The status as wait(2) gives it; nothing where the command still runs after that time.
  std::optional<int> wait_status(int milliseconds);
  // Up to 4,000 bytes from the beginning of its standard error, as far as they are here.
  const std::string& first_errors();
  // Readable where one of the two has something new; -1 once there is nothing to come.
  int link() const { return closed_ ? -1 : link_.get(); }

 private:
  bool read_message(int milliseconds);  // false: none came, or the keeper is gone

  UniqueFd link_;
  std::optional<int> status_;
  std::string errors_;
  bool closed_ = false;
};

// Keepers are copies of a process that is started with the first command. Called before the
// weights are loaded, it keeps that process small: later it would hold what they were.
void start_supervision();

}  // namespace antisd::inline reward
