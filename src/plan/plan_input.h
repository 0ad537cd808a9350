// What is planned, and the memory that each form of dist.shard and optim.offload needs for it.
//
//   const PlanInput input{config, shape, machine, set_forms(config)};
//   for (const StateForm& form : forms_of(input))
//     print(shard_name(form.shard), offload_name(form.offload), form.needed);
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "plan/step_time.h"
#include "trainer/memory_plan.h"

namespace antisd::inline plan {

const char* shard_name(Shard shard);  // as dist.shard has it

// What dist.shard and optim.offload name; nothing for "auto".
struct SetForms {
  std::optional<Shard> shard;
  std::optional<Offload> offload;
};
SetForms set_forms(const RunConfig& config);

// Those that a run may have, the ones that divide less first: weights are only divided where layers
// are recomputed.
std::vector<Shard> shard_forms(const RunConfig& config);

// Borrows configuration and shape.
struct PlanInput {
  const RunConfig& config;
  const ModelShape& shape;
  Machine machine;
  SetForms set;
  const ModelShape* teacher = nullptr;  // of method.teacher.path
};

// One form of dist.shard and optim.offload on the machine.
struct StateForm {
  Shard shard = Shard::kNone;
  Offload offload = Offload::kNone;
  double needed = 0, on_host = 0;  // bytes of a rank
  double teacher_on_host = 0;      // of those on the host, what is a teacher's at rest
  bool fits = false;
  bool whole_between = true;  // RankDivision's
};

// Bytes that a rank may use.
struct Room {
  double device = 0;
  double host = std::numeric_limits<double>::infinity();
};

using PlanOf = std::function<MemoryPlan(const RankDivision&)>;

// A form by its plan. Where whole weights do not fit, they stay divided while the run samples.
StateForm form_of(const RankDivision& ranks, double memory, const PlanOf& plan_of);

// The forms of ranks whose teams have so many members: those with less on the host first, of these
// those that divide less first. Where optim.offload is open, what the host has no room for is left
// out, and on a CPU all but `none`.
std::vector<StateForm> possible_forms(const RunConfig& config, const SetForms& set, int ranks,
                                      int members, at::Device device, const Room& room,
                                      const PlanOf& plan_of);

// The form that a run takes where dist.shard or optim.offload is open: the first that fits. Masters
// and moments that several ranks hold once leave more for the cache at hardly any cost, so the
// choice begins with those. Weights that stay divided slow down every token that is sampled, so
// they come last. Where none fits, the one that needs least.
const StateForm& chosen_form(const std::vector<StateForm>& forms);

at::ScalarType dtype_of(const RunConfig& config);  // on a GPU
RankDivision division_of(const PlanInput& input, const StateForm& form);
// `memory`: as for plan_memory.
MemoryPlan memory_of(const PlanInput& input, const RankDivision& ranks, double memory = 0);
double available_on(const Card& card);  // bytes for this program

// The forms that the input allows. Nothing is known of the host.
std::vector<StateForm> forms_of(const PlanInput& input);

}  // namespace antisd::inline plan
