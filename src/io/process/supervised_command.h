// A user's command and all processes it starts, ended together.
//
//   auto [ours, theirs] = make_socket_pair(SOCK_STREAM);
//   SupervisedCommand command("python3 reward.py", std::move(theirs));  // its standard streams
//   command.wait_status(100);  // how it ended, if it has
//   command.first_errors();    // the first bytes of its standard error
//
// A keeper process is in between: processes that the command starts, also in their own sessions and
// groups, become the keeper's children when their parent dies (PR_SET_CHILD_SUBREAPER). The keeper
// kills and waits for all of them when this object is destroyed, and when this process ends in any
// way, also by SIGKILL: it notices that its link closes. That needs no privileges, but /proc;
// without /proc only the command's process group is ended. Standard error is forwarded to this
// process's.
#pragma once

#include <optional>
#include <string>

#include "io/unique_fd.h"

namespace antisd::inline io {

class SupervisedCommand {
 public:
  // `channel` becomes its standard input and output. RunError if it cannot be started.
  SupervisedCommand(const std::string& command, UniqueFd channel);
  ~SupervisedCommand();  // ends it and waits
  SupervisedCommand(const SupervisedCommand&) = delete;
  SupervisedCommand& operator=(const SupervisedCommand&) = delete;

  // The status as from wait(2); nothing if the command still runs after that time.
  std::optional<int> wait_status(int milliseconds);
  // Up to the first 4,000 bytes of its standard error, as far as received.
  const std::string& first_errors();
  // Readable if there is news of either; -1 once nothing more will come.
  int link() const { return closed_ ? -1 : link_.get(); }

 private:
  bool read_message(int milliseconds);  // false: none came, or the keeper is gone

  UniqueFd link_;
  std::optional<int> status_;
  std::string errors_;
  bool closed_ = false;
};

// Keepers are forks of a process that is started with the first command. Call this before the
// weights are loaded to keep that process small: later it would contain them.
void start_supervision();

}  // namespace antisd::inline io
