#ifdef ANTISD_TORCH

#include "bench/recompute.h"

#include "ops/device.h"

namespace antisd::bench {

void add_recompute_option(CLI::App& app, std::string& recompute) {
  app.add_option("--recompute", recompute,
                 "layers that the backward pass recomputes: auto, true, false or how many")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "true", "false"}) | CLI::NonNegativeNumber);
}

double memory_for(const CausalLm& model) {
  const Holdings held(model.shape(), {});
  return static_cast<double>(available_memory(model.device())) +
         held.all() * static_cast<double>(c10::elementSize(model.dtype())) + held.quantized_bytes();
}

MemoryPlan planned_memory(const std::string& recompute, RunConfig& config, const CausalLm& model) {
  const RankDivision alone{.offload =
                               offload_of_name(config.optim.offload).value_or(Offload::kNone)};
  const ModelShape& shape = model.shape();
  const Method method = resolve_method(config.method, config.loss);
  if (recompute == "auto" || recompute == "true" || recompute == "false") {
    config.model.gradient_checkpointing = recompute;
    return plan_memory(shape, config, method, model.device(), model.dtype(), alone,
                       memory_for(model));
  }
  const std::size_t layers = shape.layers.size(),
                    recomputed = std::min<std::size_t>(layers, std::stoul(recompute));
  return plan_memory_keeping(layers - recomputed, shape, config, method, model.device(),
                             model.dtype(), alone);
}

}  // namespace antisd::bench

#endif
