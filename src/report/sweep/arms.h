// Run directories of a sweep -> what came out of each arm.
#pragma once

#include <vector>

#include "report/sweep/outcome.h"
#include "report/sweep/sweep.h"

namespace antisd::inline report {

// Arms in the order of their first run; seeds in theirs. A run that has written nothing is left
// out.
std::vector<ArmOutcome> read_arms(const std::vector<PlannedRun>& runs);

}  // namespace antisd::inline report
