// What bounds a plan, and what would help: other settings are tried, not guessed.
#pragma once

#include "plan/run_plan.h"

namespace antisd::inline plan {

// Parts of a plan that advice computes for other settings too.
at::ScalarType dtype_of(const RunConfig& config);
RankDivision division_of(const PlanInput& input, Shard shard);
MemoryPlan memory_of(const PlanInput& input, Shard shard);
double available_on(const Card& card);
std::vector<ShardForm> forms_of(const PlanInput& input);  // that the input allows

// Of the same card and at most `per_node` a node; 0: none up to 256.
int smallest_that_fits(const PlanInput& input);

// Fills `limit` and `advice` of a plan that is whole but for them.
void add_advice(const PlanInput& input, RunPlan& plan);

}  // namespace antisd::inline plan
