// What is planned, and the memory that each form of dist.shard needs for it.
//
//   const PlanInput input{config, shape, machine, shard_of_name(config.dist.shard)};
//   for (const ShardForm& form : forms_of(input)) print(shard_name(form.shard), form.needed);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/step_time.h"
#include "trainer/memory_plan.h"

namespace antisd::inline plan {

const char* shard_name(Shard shard);  // as dist.shard has it
// The form that dist.shard names; nothing for "auto".
std::optional<Shard> shard_of_name(const std::string& name);

// Those that a run may have, the ones that divide less first: weights are only divided where layers
// are recomputed.
std::vector<Shard> shard_forms(const RunConfig& config);

// Borrows configuration and shape.
struct PlanInput {
  const RunConfig& config;
  const ModelShape& shape;
  Machine machine;
  std::optional<Shard> shard;  // nothing: the first that fits, but for `none` of several ranks
};

// One form of dist.shard on the machine.
struct ShardForm {
  Shard shard = Shard::kNone;
  double needed = 0;  // bytes of a rank
  bool fits = false;
};

// The form that a run with several ranks takes where dist.shard is open: the first that fits.
// Masters and moments that are held once leave more for the cache at hardly any cost, so the choice
// begins with those. Where none fits, the one that needs least.
const ShardForm& chosen_form(const std::vector<ShardForm>& forms);

at::ScalarType dtype_of(const RunConfig& config);  // on a GPU
RankDivision division_of(const PlanInput& input, Shard shard);
// `memory`: as for plan_memory.
MemoryPlan memory_of(const PlanInput& input, Shard shard, double memory = 0);
double available_on(const Card& card);  // bytes for this program

// The forms that the input allows, those that divide less first.
std::vector<ShardForm> forms_of(const PlanInput& input);

}  // namespace antisd::inline plan
