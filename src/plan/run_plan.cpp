#include "plan/run_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "plan/advice.h"
#include "run/checkpoint/disk_plan.h"

namespace antisd::inline plan {
namespace {

constexpr Shard kForms[] = {Shard::kNone, Shard::kOptimizer, Shard::kGradients, Shard::kWeights};

void check_machine(const Machine& machine) {
  if (machine.gpus % machine.per_node == 0) return;
  throw InputError(fmt::format("{} GPUs do not fill nodes of {}", machine.gpus, machine.per_node),
                   {.where = "--gpus", .remedy = "give a multiple of --per-node"});
}

void add_seconds(const PlanInput& input, const Lengths& lengths, RunPlan& plan) {
  const auto& [config, shape, machine, shard] = input;
  const StepModel model(config, shape, machine, plan.ranks);
  plan.step = model.step(lengths, plan.cache_bytes);
  const Rates& rates = model.pass_time().rates();

  const bool slow_teacher = resolve_method(config.method, config.loss).slow_teacher();
  const DiskPlan disk = plan_disk(shape, config, dtype_of(config), slow_teacher);
  plan.save = disk.checkpoint_bytes / rates.disk;
  // It is copied to the host first, and written while the next step samples.
  plan.save_exposed = disk.checkpoint_bytes / plan.ranks.members / rates.host_copy +
                      std::max(0.0, plan.save - plan.step->sampling_seconds());
  plan.saves = config.checkpoint.every > 0 ? config.train.steps / config.checkpoint.every : 1;

  std::vector<std::string> unknown;
  if (config.eval.every > 0 && !config.eval.benches.empty()) {
    plan.evaluations = config.train.steps / config.eval.every + 1;
    plan.evaluation = model.evaluation(lengths, plan.cache_bytes, unknown);
  }
  for (const std::string& bench : unknown)
    plan.notes.push_back(fmt::format(
        "evaluation without {}: the file is not here and its size is not known", bench));
}

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
    if (!allowed) continue;
    const double needed = memory_of(input, shard).needed();
    forms.push_back({shard, needed, needed <= available});
  }
  return forms;
}

double RunPlan::hours() const {
  return (static_cast<double>(steps) * step_seconds() + static_cast<double>(saves) * save_exposed +
          static_cast<double>(evaluations) * evaluation) /
         3600;
}

RunPlan plan_run(const PlanInput& input, const Lengths& lengths) {
  const auto& [config, shape, machine, shard] = input;
  check_machine(machine);
  RunPlan plan{.model = config.model.path,
               .parameters = static_cast<double>(shape.parameter_count()),
               .machine = machine,
               .chosen = machine.gpus > 1 && !shard,
               .forms = forms_of(input),
               .available = available_on(machine.card),
               .steps = config.train.steps,
               .lengths = lengths.text()};
  const auto first = std::ranges::find_if(plan.forms, &ShardForm::fits);
  const ShardForm& form = first != plan.forms.end()
                              ? *first
                              : *std::ranges::min_element(plan.forms, {}, &ShardForm::needed);
  plan.ranks = division_of(input, form.shard);
  plan.memory = memory_of(input, form.shard);
  plan.fits = form.fits;
  plan.cache_bytes = plan.memory.cache_bytes(plan.available);
  plan.cache_tokens = static_cast<std::int64_t>(
      plan.cache_bytes / PassTime(shape, rates_of(machine.card)).kv_bytes_stored());
  plan.smallest_gpus = smallest_that_fits(input);
  if (plan.fits) add_seconds(input, lengths, plan);
  if (plan.evaluations > 0 && config.eval.top_p < 1)
    plan.notes.emplace_back("evaluation without the time of top-p's filter: no rate is measured");
  add_advice(input, plan);
  return plan;
}

}  // namespace antisd::inline plan
