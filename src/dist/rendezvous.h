// The ranks of a run find each other in its store, and refuse to begin together where they were
// not started alike.
//
//   meet(store, {.rank = 1, .size = 4, .identity = "revision 1a2b\nlr = 0.001"});
#pragma once

#include <string>

#include "dist/store.h"

namespace antisd::inline dist {

struct Attendance {
  int rank = 0, size = 1;
  // What has to be equal on all ranks, one fact a line. A difference is reported by its line.
  std::string identity;
  double wait_s = 300;       // for ranks that have not come yet
  bool holds_store = false;  // this process: then it ends after the others
};

// Returns when all ranks are there and alike, with their first beats (dist/liveness.h) in the
// store. All ranks throw the same error otherwise:
// - RunError if some do not come in time; it names them;
// - InputError if one was started with another number of ranks or another identity, or if two
//   processes claim one rank. A process that comes too late for that is refused alone.
void meet(Store& store, const Attendance& own);

}  // namespace antisd::inline dist
