#include "cli/weights/shard_choice.h"

#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

#include "ops/device.h"
#include "plan/plan_input.h"
#include "trainer/memory_plan.h"

namespace antisd::inline cli {
namespace {

constexpr double kGiB = 1 << 30;

// What each rank may use of its device, weights included, on the rank that has least. Ranks on one
// device share what is free there.
double least_memory(const ShardedRun& run, Communicator& ranks) {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  const std::string own = fmt::format("{} {}", host, run.device.str());
  const std::vector<std::string> all = ranks.gather(own);  // all have loaded their weights
  const auto sharing = static_cast<double>(std::ranges::count(all, own));
  const Holdings held(run.shape, {});
  const double weights =
      held.all() * static_cast<double>(c10::elementSize(run.dtype)) + held.quantized_bytes();
  const double memory = static_cast<double>(available_memory(run.device)) / sharing + weights;
  return std::ranges::min(gather_values(ranks, std::vector{memory}));
}

}  // namespace

ShardOptions choose_shards(const ShardedRun& run, const Place& place, Communicator& ranks,
                           const std::function<void(const std::string&)>& tell) {
  if (ranks.size() == 1) return {};
  const RunConfig& config = run.config;
  const int members = config.dist.shard_over == "node" ? place.local_size : place.size;
  const std::optional<Shard> set = shard_of_name(config.dist.shard);
  const double memory = least_memory(run, ranks);
  const Method method = resolve_method(config.method, config.loss);
  std::vector<ShardForm> forms;
  std::string needs;
  for (const Shard shard : set ? std::vector{*set} : shard_forms(config)) {
    const int team = shard == Shard::kNone ? 1 : members;
    const double needed = plan_memory(run.shape, config, method, run.device, run.dtype,
                                      {.size = ranks.size(), .members = team, .shard = shard})
                              .needed();
    forms.push_back({shard, needed, needed <= memory});
    needs +=
        fmt::format("{}{} {:.2f}", needs.empty() ? "" : ", ", shard_name(shard), needed / kGiB);
  }
  const ShardForm& form = set ? forms.front() : chosen_form(forms);
  const bool divides_weights = form.shard == Shard::kWeights;
  if (!set)
    tell(fmt::format("dist.shard = auto: {} ({:.2f} GiB a rank; needed by the plan: {})",
                     shard_name(form.shard), memory / kGiB, needs));
  if (divides_weights && !form.fits)
    tell(
        "the whole weights do not fit on every rank, so they stay divided: sampling fetches every "
        "layer for every token, which is slow; more ranks, or ranks with more memory, avoid it");
  return {.members = form.shard == Shard::kNone ? 1 : members,
          .gradients = form.shard >= Shard::kGradients,
          .weights = divides_weights,
          .whole_between = form.fits};
}

std::size_t choose_kept_layers(const ShardedRun& run, Communicator& ranks,
                               const ShardOptions& shard,
                               const std::function<void(const std::string&)>& tell) {
  const RunConfig& config = run.config;
  const double memory = least_memory(run, ranks);
  const Shard form = shard.weights       ? Shard::kWeights
                     : shard.gradients   ? Shard::kGradients
                     : shard.members > 1 ? Shard::kOptimizer
                                         : Shard::kNone;
  const MemoryPlan plan = plan_memory(
      run.shape, config, resolve_method(config.method, config.loss), run.device, run.dtype,
      {.size = ranks.size(), .members = shard.members, .shard = form}, memory);
  if (config.model.gradient_checkpointing == "auto") {
    tell(fmt::format(
        "model.gradient_checkpointing = auto: {} ({:.2f} of {:.2f} GiB)", recomputing_text(plan),
        (plan.total(MemoryTime::kAlways) + plan.total(MemoryTime::kUpdate)) / kGiB, memory / kGiB));
  }
  return plan.kept_layers;
}

}  // namespace antisd::inline cli
