#include "plan/plan_input.h"

#include <algorithm>
#include <iterator>

namespace antisd::inline plan {
namespace {

constexpr Shard kAllForms[] = {Shard::kNone, Shard::kOptimizer, Shard::kGradients, Shard::kWeights};

}  // namespace

const char* shard_name(Shard shard) {
  switch (shard) {
    case Shard::kNone:
      return "none";
    case Shard::kOptimizer:
      return "optimizer";
    case Shard::kGradients:
      return "gradients";
    case Shard::kWeights:
      return "weights";
  }
  return "";
}

at::ScalarType dtype_of(const RunConfig& config) {
  return config.model.dtype == "fp32"   ? at::kFloat
         : config.model.dtype == "fp16" ? at::kHalf
                                        : at::kBFloat16;
}

SetForms set_forms(const RunConfig& config) {
  SetForms set{.shard = {}, .offload = offload_of_name(config.optim.offload)};
  for (const Shard shard : kAllForms)
    if (config.dist.shard == shard_name(shard)) set.shard = shard;
  return set;
}

std::vector<Shard> shard_forms(const RunConfig& config) {
  std::vector<Shard> forms(std::begin(kAllForms), std::end(kAllForms));
  if (config.model.gradient_checkpointing == "false") std::erase(forms, Shard::kWeights);
  return forms;
}

std::vector<StateForm> possible_forms(
    const RunConfig& config, const SetForms& set, int ranks, at::Device device, const Room& room,
    const std::function<MemoryPlan(Shard shard, Offload offload)>& plan_of) {
  std::vector<Shard> shards = {Shard::kNone};
  if (ranks > 1) shards = set.shard ? std::vector{*set.shard} : shard_forms(config);
  std::vector<StateForm> forms;
  for (const Offload offload : kOffloads) {
    const bool open = !set.offload && (offload == Offload::kNone || !device.is_cpu());
    if (!open && offload != set.offload) continue;
    for (const Shard shard : shards) {
      const MemoryPlan plan = plan_of(shard, offload);
      const double needed = plan.needed(), on_host = plan.total(MemoryTime::kOnHost);
      if (!set.offload && on_host > room.host) continue;
      forms.push_back({shard, offload, needed, on_host, needed <= room.device});
    }
  }
  return forms;
}

const StateForm& chosen_form(const std::vector<StateForm>& forms) {
  const auto divides = [](const StateForm& form) { return form.shard != Shard::kNone; };
  const bool may_divide = std::ranges::any_of(forms, divides);
  const auto first = std::ranges::find_if(
      forms, [&](const StateForm& form) { return form.fits && divides(form) == may_divide; });
  return first != forms.end() ? *first : *std::ranges::min_element(forms, {}, &StateForm::needed);
}

RankDivision division_of(const PlanInput& input, Shard shard, Offload offload) {
  const Machine& machine = input.machine;
  const int team = input.config.dist.shard_over == "node" ? machine.per_node : machine.gpus;
  return {machine.gpus, shard == Shard::kNone ? 1 : team, shard, offload};
}

MemoryPlan memory_of(const PlanInput& input, Shard shard, Offload offload, double memory) {
  const RunConfig& config = input.config;
  return plan_memory(input.shape, config, resolve_method(config.method, config.loss),
                     at::Device(at::kCUDA), dtype_of(config), division_of(input, shard, offload),
                     memory);
}

double available_on(const Card& card) {
  return card.memory - rates_of(card).reserve;
}

std::vector<StateForm> forms_of(const PlanInput& input) {
  return possible_forms(
      input.config, input.set, input.machine.gpus, at::kCUDA,
      {.device = available_on(input.machine.card)},
      [&](Shard shard, Offload offload) { return memory_of(input, shard, offload); });
}

}  // namespace antisd::inline plan
