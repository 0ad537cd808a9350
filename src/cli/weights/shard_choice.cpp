#include "cli/weights/shard_choice.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <unistd.h>

#include "ops/device.h"
#include "ops/host_memory.h"
#include "plan/plan_input.h"
#include "trainer/memory_plan.h"

namespace antisd::inline cli {
namespace {

constexpr double kGiB = 1 << 30;
constexpr double kPinSeconds = 0.6;  // per GiB; 92 GiB took 53 s on an H200's host

// The device's free memory for each of the ranks that use it, on the rank that has least.
double least_free(at::Device device, Communicator& ranks) {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  const std::string own = fmt::format("{} {}", host, device.str());
  const std::vector<std::string> all = ranks.gather(own);  // all have loaded their weights
  const auto sharing = static_cast<double>(std::ranges::count(all, own));
  const double free = static_cast<double>(available_memory(device)) / sharing;
  return std::ranges::min(gather_values(ranks, std::vector{free}));
}

// What each rank may use of its device, weights included.
double least_memory(const ShardedRun& run, Communicator& ranks) {
  const Holdings held(run.shape, {});
  return least_free(run.device, ranks) +
         held.all() * static_cast<double>(c10::elementSize(run.dtype)) + held.quantized_bytes();
}

// "moments (139.2 GiB a rank; needed by the plan: none 150.0, moments 120.0)".
std::string reason_of(const char* chosen, double memory, const std::string& needs) {
  return fmt::format("{} ({:.2f} GiB a rank; needed by the plan: {})", chosen, memory / kGiB,
                     needs);
}

void tell_choice(const StateForm& chosen, const std::vector<StateForm>& forms, const Room& room,
                 const std::function<void(const std::string&)>& tell, const SetForms& set,
                 bool several) {
  std::string shards, offloads;
  for (const StateForm& form : forms) {
    const auto add = [&](std::string& text, const char* name) {
      text += fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ", name, form.needed / kGiB);
    };
    if (form.offload == chosen.offload) add(shards, shard_name(form.shard));
    if (form.shard == chosen.shard) add(offloads, offload_name(form.offload));
  }
  if (several && !set.shard)
    tell("dist.shard = auto: " + reason_of(shard_name(chosen.shard), room.device, shards));
  if (!set.offload && (chosen.offload != Offload::kNone || !chosen.fits))
    tell("optim.offload = auto: " + reason_of(offload_name(chosen.offload), room.device, offloads) +
         fmt::format("; {:.2f} GiB of the host are free for it", room.host / kGiB));
}

}  // namespace

ShardOptions choose_shards(const ShardedRun& run, const Place& place, Communicator& ranks,
                           const std::function<void(const std::string&)>& tell) {
  const RunConfig& config = run.config;
  const int members = config.dist.shard_over == "node" ? place.local_size : place.size;
  const Method method = resolve_method(config.method, config.loss);
  const SetForms set = set_forms(config);
  const double free_on_host = least_free(at::kCPU, ranks);
  const Room room{.device = least_memory(run, ranks),
                  .host = std::max(0.0, free_on_host - kHostReserve)};
  const std::vector<StateForm> forms = possible_forms(
      config, set, ranks.size(), members, run.device, room, [&](const RankDivision& division) {
        return plan_memory(run.shape, config, method, run.device, run.dtype, division,
                           /*memory=*/0, run.teacher);
      });
  const StateForm& form = chosen_form(forms);
  const double state = form.on_host - form.teacher_on_host;
  // Of a teacher only its weights are sure to be there: its states are planned for the longest
  // responses.
  const double teacher =
      run.teacher != nullptr && !run.device.is_cpu()
          ? Holdings(*run.teacher, {}).all() * static_cast<double>(c10::elementSize(run.dtype))
          : 0;
  if (state + teacher > 0) check_host_memory(state + teacher, free_on_host, teacher);
  if (!run.device.is_cpu() || ranks.size() > 1)
    tell_choice(form, forms, room, tell, set, ranks.size() > 1);
  if (form.offload != Offload::kNone && run.device.is_cuda())
    tell(fmt::format("{:.2f} GiB of host memory are pinned for {}, which takes up to {:.0f} s",
                     state / kGiB,
                     form.offload == Offload::kAll ? "masters and moments" : "moments",
                     std::ceil(state / kGiB * kPinSeconds)));
  const bool divides_weights = form.shard == Shard::kWeights;
  if (!form.whole_between)
    tell(
        "the whole weights do not fit on every rank, so they stay divided: sampling fetches every "
        "layer for every token, which is slow; more ranks, or ranks with more memory, avoid it");
  return {.members = form.shard == Shard::kNone ? 1 : members,
          .gradients = form.shard >= Shard::kGradients,
          .weights = divides_weights,
          .whole_between = form.whole_between,
          .offload = form.offload};
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
  const MemoryPlan plan = plan_memory(run.shape, config, resolve_method(config.method, config.loss),
                                      run.device, run.dtype,
                                      {.size = ranks.size(),
                                       .members = shard.members,
                                       .shard = form,
                                       .whole_between = shard.whole_between,
                                       .offload = shard.offload},
                                      memory, run.teacher);
  if (config.model.gradient_checkpointing == "auto") {
    tell(fmt::format(
        "model.gradient_checkpointing = auto: {} ({:.2f} of {:.2f} GiB)", recomputing_text(plan),
        (plan.total(MemoryTime::kAlways) + plan.total(MemoryTime::kUpdate)) / kGiB, memory / kGiB));
  }
  return plan.kept_layers;
}

}  // namespace antisd::inline cli
