// Ranks that are threads of one process, for tests and the thread sanitizer.
//
//   run_ranks(3, [&](Communicator& ranks) { total[ranks.rank()] = sum_over(ranks, 1.5); });
#pragma once

#include <functional>

#include "dist/communicator.h"

namespace antisd::inline dist {

// Runs `work` in a thread for each rank and waits for all. Where one throws, the others get
// RankLost from their next call, and run_ranks throws the first rank's own error.
void run_ranks(int size, const std::function<void(Communicator& ranks)>& work);

// One rank, as long as the program runs.
Communicator& one_rank();

}  // namespace antisd::inline dist
