// What bounds a plan, and what would help: other settings are tried, not guessed.
#pragma once

#include "plan/run_plan.h"

namespace antisd::inline plan {

// Of the same card and at most `per_node` a node; 0: none up to 256.
int smallest_that_fits(const PlanInput& input);

// Fills `limit` and `advice` of a plan that is whole but for them.
void add_advice(const PlanInput& input, RunPlan& plan);

}  // namespace antisd::inline plan
