// optimizer.safetensors: AdamW's moments, and the masters of weights that are saved in lower
// precision, under the tensor names of the model's own files: "exp_avg.model.norm.weight",
// "exp_avg_sq...." and "master....". A frozen parameter has none of these.
#pragma once

#include <filesystem>

#include "optim/adamw.h"

namespace antisd::inline run {

// RunError.
void save_optimizer(const ParameterStore& parameters, std::int64_t steps,
                    const std::filesystem::path& file);

// Loads moments, step count, and the weights in full precision: from the masters in the file or,
// without masters, from the model's weights in `model_directory`. So a run on a GPU can be resumed
// on a CPU, and vice versa. InputError for what does not fit the model; some tensors may then have
// changed.
void load_optimizer(CausalLm& model, AdamW& optimizer, const std::filesystem::path& file,
                    const std::filesystem::path& model_directory);

}  // namespace antisd::inline run
