// The cores of a machine among the processes of one run that are on it.
//
//   share_cores(8);  // one of 8: from now on available_threads() is its part
#pragma once

namespace antisd::inline core {

// What one of `processes` takes, at least 1: its part of `together`, the cores that all of them
// have, but no more than its `own`, which it may use. If `together` is 0, each may use the same.
int core_share(int own, int processes, int together = 0);

// available_threads() is this process's share from now on, and so is what depends on it: threads of
// the tensor library, graders, readers. Call it before they start.
void share_cores(int processes, int together = 0);

// The share of `own` cores by the last share_cores().
int own_share(int own);

}  // namespace antisd::inline core
