// The outcome of each arm from a sweep's run directories.
#pragma once

#include <vector>

#include "report/sweep/outcome.h"
#include "report/sweep/sweep.h"

namespace antisd::inline report {

// Arms in the order of their first run, and so their seeds. A run that has written nothing is left
// out.
std::vector<ArmOutcome> read_arms(const std::vector<PlannedRun>& runs);

}  // namespace antisd::inline report
