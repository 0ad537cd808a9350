// `antisd-bench grade`: grades a second over real answers in sentences as models write them, and
// the time to grade a step's worth of long rollouts.
#pragma once

#include <string>
#include <vector>

namespace antisd::bench {

// --answers FILE.jsonl (rows with "answer"; default: a few built-in ones), --json. Returns the exit
// status.
int run_grade(const std::vector<std::string>& arguments);

}  // namespace antisd::bench
