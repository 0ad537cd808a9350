#include "plan/advice.h"

#include <algorithm>

#include <fmt/format.h>

namespace antisd::inline plan {
namespace {

constexpr int kMostGpus = 256;

double gib(double bytes) {
  return bytes / (1 << 30);
}

bool any_fits(const PlanInput& input) {
  return std::ranges::any_of(forms_of(input), &StateForm::fits);
}

// The same with more settings.
bool fits_with(const PlanInput& input, const std::vector<std::string>& settings) {
  RunConfig other;
  other.options().load_toml_text(input.config.options().to_toml(/*with_help=*/false), "the plan");
  for (const std::string& setting : settings)
    other.options().assign(setting);
  other.resolve();
  return any_fits({other, input.shape, input.machine, input.set});
}

std::string phase_that_needs_most(const RunPlan& plan) {
  const MemoryPlan& memory = plan.memory;
  const double always = memory.total(MemoryTime::kAlways);
  const double scoring = always + memory.total(MemoryTime::kScoring);
  const double update = always + memory.total(MemoryTime::kUpdate);
  if (memory.needed() > std::max(scoring, update)) return "sampling";
  return update >= scoring ? "the update" : "scoring";
}

void advise_how_to_fit(const PlanInput& input, RunPlan& plan) {
  const RunConfig& config = input.config;
  plan.limit =
      fmt::format("memory: {} needs {:.1f} GiB of a rank, a card has {:.1f}",
                  phase_that_needs_most(plan), gib(plan.memory.needed()), gib(plan.available));
  const auto try_setting = [&](const std::string& setting) {
    if (fits_with(input, {setting})) plan.advice.push_back(setting);
  };
  const Offload offload = plan.ranks.offload;
  if (!plan.shard_chosen && plan.machine.gpus > 1) {
    for (const Shard shard : {Shard::kOptimizer, Shard::kGradients, Shard::kWeights}) {
      if (shard == plan.ranks.shard) continue;
      const StateForm form =
          form_of(division_of(input, {.shard = shard, .offload = offload}), plan.available,
                  [&](const RankDivision& ranks) { return memory_of(input, ranks); });
      if (form.fits) plan.advice.push_back(fmt::format("dist.shard={}", shard_name(shard)));
    }
  }
  for (const Offload more : kOffloads) {
    if (plan.offload_chosen || more <= offload) continue;
    const MemoryPlan memory =
        memory_of(input, division_of(input, {.shard = plan.ranks.shard, .offload = more}));
    if (memory.needed() > plan.available) continue;
    plan.advice.push_back(fmt::format("optim.offload={} ({:.1f} GiB of host memory a rank)",
                                      offload_name(more), gib(memory.total(MemoryTime::kOnHost))));
    break;
  }
  if (plan.smallest_gpus > 0) {
    plan.advice.push_back(fmt::format("{} GPUs of this kind ({} of memory each)",
                                      plan.smallest_gpus,
                                      fmt::format("{:.0f} GiB", gib(plan.machine.card.memory))));
  }
  if (config.model.gradient_checkpointing == "false")
    try_setting("model.gradient_checkpointing=auto");
  const std::int64_t longest = config.rollout.max_sequence_tokens;
  if (config.train.micro_batch_tokens > longest)
    try_setting(fmt::format("train.micro_batch_tokens={}", longest));
  for (std::int64_t tokens = longest / 2; tokens > config.data.max_prompt_tokens; tokens /= 2) {
    const std::string sequence = fmt::format("rollout.max_sequence_tokens={}", tokens);
    const std::string batch = fmt::format("train.micro_batch_tokens={}", tokens);
    if (!fits_with(input, {sequence, batch})) continue;
    plan.advice.push_back(sequence + " " + batch);
    break;
  }
  std::vector<Card> larger = cards();
  std::ranges::sort(larger, {}, &Card::memory);
  for (const Card& card : larger) {
    if (card.memory <= plan.machine.card.memory) continue;
    PlanInput other = input;
    other.machine.card = card;
    if (!any_fits(other)) continue;
    plan.advice.push_back(fmt::format("{} x {}", plan.machine.gpus, card.name));
    break;
  }
}

void advise_on_sampling(const RunConfig& config, RunPlan& plan) {
  const SamplingTime& sampling = plan.step->sampling;
  if (!plan.ranks.whole_between) {
    plan.limit =
        "weights that stay divided: every layer is fetched from the other ranks for every token";
    plan.advice.emplace_back(
        "more GPUs, or cards with more memory, on which the weights are whole");
    return;
  }
  if (sampling.longest > 0.6 * sampling.seconds()) {
    plan.limit = fmt::format(
        "the longest response: by itself it takes {:.0f} s of the {:.0f} s of sampling, on any "
        "number of GPUs",
        sampling.longest, sampling.seconds());
    plan.advice.emplace_back("a smaller rollout.max_sequence_tokens");
    return;
  }
  if (sampling.seconds() > 1.1 * plan.step->sampling_unbounded) {
    plan.limit = fmt::format(
        "the cache: its {} tokens are too few for the responses, with more sampling would take "
        "{:.0f} s",
        plan.cache_tokens, plan.step->sampling_unbounded);
    plan.advice.emplace_back(plan.ranks.shard < Shard::kGradients
                                 ? "more GPUs, or a dist.shard that divides more"
                                 : "more GPUs");
    if (plan.ranks.offload != Offload::kAll)
      plan.advice.emplace_back("optim.offload=all, where the host has the memory");
    return;
  }
  plan.limit = "sampling: reading weights, keys and values for every token";
  if (plan.machine.gpus < config.rollout.prompts_per_step) plan.advice.emplace_back("more GPUs");
}

void advise_on_speed(const RunConfig& config, RunPlan& plan) {
  const StepTime& step = *plan.step;
  const double sampling = step.sampling_seconds(), passes = step.scoring + step.update;
  if (step.traffic.exposed > 0.2 * step.seconds()) {
    plan.limit = fmt::format("the network: ranks wait {:.0f} s of {:.0f} s for it",
                             step.traffic.exposed, step.seconds());
    plan.advice.emplace_back("a faster network");
    if (plan.machine.gpus > plan.machine.per_node && config.dist.shard_over == "all")
      plan.advice.emplace_back("dist.shard_over=node, where memory allows");
  } else if (sampling >= passes) {
    advise_on_sampling(config, plan);
  } else {
    plan.limit = "arithmetic of scoring and update";
    if (step.micro_batches >= plan.machine.gpus) plan.advice.emplace_back("more GPUs");
  }
  if (plan.machine.gpus > config.rollout.prompts_per_step) {
    plan.advice.push_back(
        fmt::format("at most {} GPUs: so many prompts are sampled, other ranks wait for them",
                    config.rollout.prompts_per_step));
  }
}

}  // namespace

int smallest_that_fits(const PlanInput& input) {
  const Machine& machine = input.machine;
  const auto fits = [&](int gpus) {
    PlanInput other = input;
    other.machine.gpus = gpus;
    other.machine.per_node = std::min(gpus, machine.per_node);
    return any_fits(other);
  };
  for (int gpus = 1; gpus < machine.per_node; gpus *= 2)
    if (fits(gpus)) return gpus;
  for (int nodes = 1; nodes * machine.per_node <= kMostGpus; nodes += nodes < 8 ? 1 : 8)
    if (fits(nodes * machine.per_node)) return nodes * machine.per_node;
  return 0;
}

void add_advice(const PlanInput& input, RunPlan& plan) {
  if (!plan.fits) return advise_how_to_fit(input, plan);
  if (plan.shard_chosen && plan.ranks.shard != Shard::kNone)
    plan.advice.push_back(
        fmt::format("dist.shard={}, as this plan takes it to be", shard_name(plan.ranks.shard)));
  if (plan.ranks.offload != Offload::kNone)
    plan.notes.push_back(fmt::format("each rank needs {:.1f} GiB of host memory",
                                     gib(plan.memory.total(MemoryTime::kOnHost))));
  advise_on_speed(input.config, plan);
}

}  // namespace antisd::inline plan
