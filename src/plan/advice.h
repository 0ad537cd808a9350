// What bounds a plan, and what would help: other settings are tried, not guessed.
#pragma once

#include "plan/run_plan.h"

namespace antisd::inline plan {

// Parts of a plan that advice computes for other settings too.
at::ScalarType dtype_of(const RunConfig& config);
RankDivision division_of(const RunConfig& config, const Machine& machine, Shard shard);
MemoryPlan memory_of(const RunConfig& config, const ModelShape& shape, const Machine& machine,
                     Shard shard);
double available_on(const Card& card);
// The forms that the configuration allows.
std::vector<ShardForm> forms_on(const RunConfig& config, const ModelShape& shape,
                                const Machine& machine);

// Of the same card and at most `per_node` a node; 0: none up to 1024.
int smallest_that_fits(const RunConfig& config, const ModelShape& shape, const Machine& machine);

// Fills `limit` and `advice` of a plan that is whole but for them.
void add_advice(const RunConfig& config, const ModelShape& shape, RunPlan& plan);

}  // namespace antisd::inline plan
