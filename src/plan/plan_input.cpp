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

std::optional<Shard> shard_of_name(const std::string& name) {
  for (const Shard shard : kAllForms)
    if (name == shard_name(shard)) return shard;
  return std::nullopt;
}

std::vector<Shard> shard_forms(const RunConfig& config) {
  std::vector<Shard> forms(std::begin(kAllForms), std::end(kAllForms));
  if (config.model.gradient_checkpointing == "false") std::erase(forms, Shard::kWeights);
  return forms;
}

const ShardForm& chosen_form(const std::vector<ShardForm>& forms) {
  const auto first = std::ranges::find_if(
      forms, [](const ShardForm& form) { return form.fits && form.shard != Shard::kNone; });
  return first != forms.end() ? *first : *std::ranges::min_element(forms, {}, &ShardForm::needed);
}

RankDivision division_of(const PlanInput& input, Shard shard) {
  const Machine& machine = input.machine;
  const int team = input.config.dist.shard_over == "node" ? machine.per_node : machine.gpus;
  return {machine.gpus, shard == Shard::kNone ? 1 : team, shard};
}

MemoryPlan memory_of(const PlanInput& input, Shard shard, double memory) {
  const RunConfig& config = input.config;
  return plan_memory(input.shape, config, resolve_method(config.method, config.loss),
                     at::Device(at::kCUDA), dtype_of(config), division_of(input, shard), memory);
}

double available_on(const Card& card) {
  return card.memory - rates_of(card).reserve;
}

std::vector<ShardForm> forms_of(const PlanInput& input) {
  std::vector<ShardForm> forms;
  const double available = available_on(input.machine.card);
  for (const Shard shard : shard_forms(input.config)) {
    const bool allowed =
        input.machine.gpus == 1 ? shard == Shard::kNone : !input.shard || shard == *input.shard;
    if (!allowed) continue;
    const double needed = memory_of(input, shard).needed();
    forms.push_back({shard, needed, needed <= available});
  }
  return forms;
}

}  // namespace antisd::inline plan
