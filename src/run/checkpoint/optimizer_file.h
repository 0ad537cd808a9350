// optimizer.safetensors: the moments of AdamW, and the masters of weights that are saved in less
// precision, under the tensor names of the model's own files: "exp_avg.model.norm.weight",
// "exp_avg_sq...." and "master....". A frozen parameter has none of these.
#pragma once

#include <filesystem>

#include "optim/adamw.h"

namespace antisd::inline run {

// RunError.
void save_optimizer(const ParameterStore& parameters, std::int64_t steps,
                    const std::filesystem::path& file);

// Moments, step count, and the weights in full precision: from the masters in the file, or, where
// it has none, from the model's own weights in `model_directory`. A run on a GPU goes on on a CPU
// this way, and the other way round. InputError for what does not fit the model; then some tensors
// may have changed.
void load_optimizer(CausalLm& model, AdamW& optimizer, const std::filesystem::path& file,
                    const std::filesystem::path& model_directory);

}  // namespace antisd::inline run
