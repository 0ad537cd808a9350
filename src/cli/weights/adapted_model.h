// The model that a run with adapters trains ([model.lora]).
#pragma once

#include <filesystem>

#include "config/run_config.h"
#include "model/causal_lm.h"

namespace antisd::inline cli {

// The base with new adapters.
CausalLm load_with_adapters(const std::filesystem::path& base, const RunConfig& config,
                            at::Device device);

// Training starts from whole models: InputError, with what to do, if `model` is an adapter.
void refuse_adapter(const std::filesystem::path& model);

}  // namespace antisd::inline cli
