// Starts one rank of a launched run: this program again, with the same arguments.
//
//   const RankStarter starter(4);
//   const StartedRank rank = starter.start(2, signals);
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "dist/signal_pipe.h"
#include "io/unique_fd.h"

namespace antisd::inline dist {

struct StartedRank {
  pid_t pid = -1;   // also its process group and session
  UniqueFd output;  // to read what it prints, without waiting; none for rank 0
};

// Chooses the port at which the ranks meet. A socket that is bound and never listens keeps it while
// the starter lives: the kernel hands the port to nobody else, and rank 0 can still listen there,
// with SO_REUSEADDR as servers have.
class RankStarter {
 public:
  explicit RankStarter(int processes);  // RunError

  // Rank 0 has this process's standard streams. The others read nothing and print into a pipe. The
  // kernel kills the rank if this thread ends. RunError if the system refuses.
  StartedRank start(int rank, const SignalPipe& signals) const;

 private:
  std::vector<std::string> environment_of(int rank) const;

  int processes_;
  UniqueFd socket_;  // keeps the port
  int port_ = 0;
  std::string name_;     // of this launch
  std::string program_;  // its path
  std::vector<std::string> arguments_;
};

}  // namespace antisd::inline dist
