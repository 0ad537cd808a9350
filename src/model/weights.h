// Weights between a model and a Hugging Face directory. In memory the projections of queries, keys
// and values lie in one matrix, so do gate and up and the experts of a layer; on disk each has a
// tensor of its own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/causal_lm.h"

namespace antisd {

// One tensor of the directory as a part of one of our parameters.
struct WeightSlice {
  std::string name;       // as in the files: "model.layers.0.self_attn.q_proj.weight"
  std::size_t parameter;  // index into CausalLm::parameters()
  std::int64_t expert = -1;
  std::int64_t first_row = 0;
  std::vector<std::int64_t> sizes;

  // The part of `whole`, a tensor of the parameter's sizes (its value, gradient or moment). Shares
  // its memory.
  at::Tensor of(const at::Tensor& whole) const;
};

std::vector<WeightSlice> weight_slices(const CausalLm& model);

struct LoadOptions {
  bool check_weights = false;  // refuse tensors with NaN or infinity, by name
};

// InputError that lists all missing, surplus and mis-shaped tensors at once, or names one that a
// model in fp16 cannot hold.
CausalLm load_model(const std::filesystem::path& directory, at::Device device, at::ScalarType dtype,
                    LoadOptions options = {});
void load_weights(CausalLm& model, const std::filesystem::path& directory,
                  LoadOptions options = {});

// Writes weights in shards of 5 GB, and beside them the config, tokenizer and template files of
// `origin`, so that transformers opens the directory. config.json names the precision that was
// written.
void save_model(const CausalLm& model, const std::filesystem::path& origin,
                const std::filesystem::path& directory, at::ScalarType dtype);

// Normal numbers of deviation `deviation` for matrices, 1 for norms, 0 for biases; the same for one
// seed on every device.
void initialise_randomly(CausalLm& model, std::uint64_t seed, double deviation = 0.02);

}  // namespace antisd
