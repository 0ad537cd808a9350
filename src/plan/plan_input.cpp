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

StateForm form_of(const RankDivision& ranks, double memory, const PlanOf& plan_of) {
  const auto form = [&](const RankDivision& division) {
    const MemoryPlan plan = plan_of(division);
    return StateForm{.shard = division.shard,
                     .offload = division.offload,
                     .needed = plan.needed(),
                     .on_host = plan.total(MemoryTime::kOnHost),
                     .teacher_on_host = plan.teacher_on_host(),
                     .fits = plan.needed() <= memory,
                     .whole_between = division.whole_between};
  };
  const StateForm whole = form(ranks);
  if (whole.fits || ranks.shard != Shard::kWeights || ranks.members == 1) return whole;
  RankDivision divided = ranks;
  divided.whole_between = false;
  const StateForm kept = form(divided);
  return kept.needed < whole.needed ? kept : whole;
}

std::vector<StateForm> possible_forms(const RunConfig& config, const SetForms& set, int ranks,
                                      int members, at::Device device, const Room& room,
                                      const PlanOf& plan_of) {
  std::vector<Shard> shards = {Shard::kNone};
  if (ranks > 1) shards = set.shard ? std::vector{*set.shard} : shard_forms(config);
  std::vector<StateForm> forms;
  for (const Offload offload : kOffloads) {
    const bool open = !set.offload && (offload == Offload::kNone || !device.is_cpu());
    if (!open && offload != set.offload) continue;
    for (const Shard shard : shards) {
      const StateForm form = form_of({.size = ranks,
                                      .members = shard == Shard::kNone ? 1 : members,
                                      .shard = shard,
                                      .offload = offload},
                                     room.device, plan_of);
      // Without an offload, only a teacher at rest is on the host, whatever the form.
      const bool has_room = offload == Offload::kNone || form.on_host <= room.host;
      if (set.offload || has_room) forms.push_back(form);
    }
  }
  return forms;
}

const StateForm& chosen_form(const std::vector<StateForm>& forms) {
  const auto divides = [](const StateForm& form) { return form.shard != Shard::kNone; };
  const bool may_divide = std::ranges::any_of(forms, divides);
  for (const bool whole : {true, false}) {
    const auto first = std::ranges::find_if(forms, [&](const StateForm& form) {
      return form.fits && divides(form) == may_divide && form.whole_between == whole;
    });
    if (first != forms.end()) return *first;
  }
  return *std::ranges::min_element(forms, {}, &StateForm::needed);
}

namespace {

int team_of(const PlanInput& input) {
  return input.config.dist.shard_over == "node" ? input.machine.per_node : input.machine.gpus;
}

}  // namespace

RankDivision division_of(const PlanInput& input, const StateForm& form) {
  return {.size = input.machine.gpus,
          .members = form.shard == Shard::kNone ? 1 : team_of(input),
          .shard = form.shard,
          .whole_between = form.whole_between,
          .offload = form.offload};
}

MemoryPlan memory_of(const PlanInput& input, const RankDivision& ranks, double memory) {
  const RunConfig& config = input.config;
  return plan_memory(input.shape, config, resolve_method(config.method, config.loss),
                     at::Device(at::kCUDA), dtype_of(config), ranks, memory, input.teacher);
}

double available_on(const Card& card) {
  return card.memory - rates_of(card).reserve;
}

std::vector<StateForm> forms_of(const PlanInput& input) {
  return possible_forms(input.config, input.set, input.machine.gpus, team_of(input), at::kCUDA,
                        {.device = available_on(input.machine.card)},
                        [&](const RankDivision& ranks) { return memory_of(input, ranks); });
}

}  // namespace antisd::inline plan
