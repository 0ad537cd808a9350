#include "plan/run_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "plan/advice.h"
#include "run/checkpoint/disk_plan.h"

namespace antisd::inline plan {
namespace {

constexpr double kSmallestMeasured = 0.5e9;  // parameters

void check_machine(const Machine& machine) {
  if (machine.gpus % machine.per_node == 0) return;
  throw InputError(fmt::format("{} GPUs do not fill nodes of {}", machine.gpus, machine.per_node),
                   {.where = "--gpus", .remedy = "give a multiple of --per-node"});
}

void add_seconds(const PlanInput& input, const Lengths& lengths, RunPlan& plan) {
  const auto& [config, shape, machine, set, teacher] = input;
  const StepModel model(config, shape, machine, plan.ranks, plan.memory.kept_layers);
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

double RunPlan::hours() const {
  return (static_cast<double>(steps) * step_seconds() + static_cast<double>(saves) * save_exposed +
          static_cast<double>(evaluations) * evaluation) /
         3600;
}

RunPlan plan_run(const PlanInput& input, const Lengths& lengths) {
  const auto& [config, shape, machine, set, teacher] = input;
  check_machine(machine);
  RunPlan plan{.model = config.model.path,
               .parameters = static_cast<double>(shape.parameter_count()),
               .machine = machine,
               .shard_chosen = machine.gpus > 1 && !set.shard,
               .offload_chosen = !set.offload,
               .forms = forms_of(input),
               .available = available_on(machine.card),
               .steps = config.train.steps,
               .lengths = lengths.text()};
  const StateForm& form = chosen_form(plan.forms);
  plan.ranks = division_of(input, form);
  plan.memory = memory_of(input, plan.ranks, plan.available);
  plan.needed = form.needed;
  plan.fits = form.fits;
  plan.cache_bytes = plan.memory.cache_bytes(plan.available);
  plan.cache_tokens = static_cast<std::int64_t>(
      plan.cache_bytes / PassTime(shape, rates_of(machine.card)).kv_bytes_stored());
  plan.smallest_gpus = smallest_that_fits(input);
  if (plan.fits) add_seconds(input, lengths, plan);
  if (!plan.ranks.whole_between)
    plan.notes.emplace_back(
        "whole weights do not fit on a rank, so they stay divided while the run samples; without "
        "the time that the host takes to start each layer's kernels, which no graph holds then");
  if (plan.evaluations > 0 && config.eval.top_p < 1)
    plan.notes.emplace_back("evaluation without the time of top-p's filter: no rate is measured");
  if (plan.fits && dtype_of(config) == at::kFloat)
    plan.notes.emplace_back("seconds are those of 16-bit weights: fp32 has no rates");
  if (plan.fits && teacher != nullptr)
    plan.notes.emplace_back(
        "scoring has the seconds of a teacher of the model's own size, without the copy of its "
        "weights to the device");
  if (plan.fits && shape.lora)
    plan.notes.emplace_back(
        "passes have the seconds of a whole model's: the gradients of frozen weights, which are "
        "not made, are not taken off, nor are the adapters' own products added");
  if (plan.fits && plan.parameters < kSmallestMeasured)
    plan.notes.emplace_back(
        "the rates are those of models from 0.6 billion parameters on: smaller "
        "ones are bound by the host");
  add_advice(input, plan);
  return plan;
}

}  // namespace antisd::inline plan
