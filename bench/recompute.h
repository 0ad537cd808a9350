// --recompute of the benchmarks, and the memory that goes with it.
#pragma once

#include <string>

#include "bench/options.h"
#include "config/run_config.h"
#include "model/causal_lm.h"
#include "trainer/memory_plan.h"

namespace antisd::bench {

// "auto", "true", "false", or the number of layers that the backward pass recomputes.
void add_recompute_option(CLI::App& app, std::string& recompute);

// What the run may take of the device, with the weights of the model, which are there already.
double memory_for(const CausalLm& model);

// The plan of the run; with auto, as many layers are kept as fit.
MemoryPlan planned_memory(const std::string& recompute, RunConfig& config, const CausalLm& model);

}  // namespace antisd::bench
