#include "plan/plan_input.h"

namespace antisd::inline plan {
namespace {

constexpr Shard kForms[] = {Shard::kNone, Shard::kOptimizer, Shard::kGradients, Shard::kWeights};

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
  for (const Shard shard : kForms)
    if (name == shard_name(shard)) return shard;
  return std::nullopt;
}

std::optional<Shard> shard_set(const RunConfig& config) {
  const Option* option = config.options().find("dist.shard");
  return option && option->was_set() ? shard_of_name(config.dist.shard) : std::nullopt;
}

RankDivision division_of(const PlanInput& input, Shard shard) {
  const Machine& machine = input.machine;
  const int team = input.config.dist.shard_over == "node" ? machine.per_node : machine.gpus;
  return {machine.gpus, shard == Shard::kNone ? 1 : team, shard};
}

MemoryPlan memory_of(const PlanInput& input, Shard shard) {
  const RunConfig& config = input.config;
  return plan_memory(input.shape, config, resolve_method(config.method, config.loss),
                     at::Device(at::kCUDA), dtype_of(config), division_of(input, shard));
}

double available_on(const Card& card) {
  return card.memory - rates_of(card).reserve;
}

std::vector<ShardForm> forms_of(const PlanInput& input) {
  std::vector<ShardForm> forms;
  const double available = available_on(input.machine.card);
  for (const Shard shard : kForms) {
    const bool allowed =
        input.machine.gpus == 1 ? shard == Shard::kNone : !input.shard || shard == *input.shard;
    // Divided layers have to be recomputed.
    if (!allowed || (shard == Shard::kWeights && !input.config.model.gradient_checkpointing))
      continue;
    const double needed = memory_of(input, shard).needed();
    forms.push_back({shard, needed, needed <= available});
  }
  return forms;
}

}  // namespace antisd::inline plan
