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
  return static_cast<double>(available_memory(model.device())) +
         static_cast<double>(model.shape().parameter_count()) *
             static_cast<double>(c10::elementSize(model.dtype()));
}

MemoryPlan planned_memory(const std::string& recompute, RunConfig& config, const CausalLm& model) {
  const ModelShape& shape = model.shape();
  const Method method = resolve_method(config.method, config.loss);
  if (recompute == "auto" || recompute == "true" || recompute == "false") {
    config.model.gradient_checkpointing = recompute;
    return plan_memory(shape, config, method, model.device(), model.dtype(), {}, memory_for(model));
  }
  const std::size_t layers = shape.layers.size(),
                    recomputed = std::min<std::size_t>(layers, std::stoul(recompute));
  return plan_memory_keeping(layers - recomputed, shape, config, method, model.device(),
                             model.dtype());
}

}  // namespace antisd::bench

#endif
