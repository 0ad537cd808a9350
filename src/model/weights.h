// Moves weights between a model and a Hugging Face directory, by tensor (parameter_spec.h).
//
//   CausalLm model = load_model("Qwen3-8B", at::kCPU, at::kFloat);
//   save_model(model, "Qwen3-8B", "out", at::kBFloat16);
#pragma once

#include <filesystem>

#include "model/causal_lm.h"

namespace antisd::inline model {

struct LoadOptions {
  bool check_weights = false;       // reject tensors with NaN or infinity, by name
  std::filesystem::path base = {};  // below an adapter, in place of the model that it names
  std::optional<QuantizedKind> base_format = {};  // of load_model: ModelShape::base
};

// `directory` may be an adapter's: the model is then its base with the adapter. InputError that
// lists all missing, surplus and mis-shaped tensors, or names one that is outside fp16's range, or
// one with NaN or infinity that is quantised. Tensors are quantised one by one.
CausalLm load_model(const std::filesystem::path& directory, at::Device device, at::ScalarType dtype,
                    LoadOptions options = {});
void load_weights(CausalLm& model, const std::filesystem::path& directory,
                  LoadOptions options = {});

// Writes weights in shards of 5 GB, and the config, tokenizer and template files of `origin`, so
// that transformers can open the directory; adapters are left out. config.json names the precision
// that was written. Not for a model with a quantised base, whose exact weights are in its own
// directory.
void save_model(const CausalLm& model, const std::filesystem::path& origin,
                const std::filesystem::path& directory, at::ScalarType dtype);

// Normal numbers with standard deviation `deviation` for matrices, 1 for norms, 0 for biases; a
// seed gives the same values on every device.
void initialise_randomly(CausalLm& model, std::uint64_t seed, double deviation = 0.02);

}  // namespace antisd::inline model
