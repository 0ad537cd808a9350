// optimizer.safetensors, or its shards with an index: AdamW's moments, and the masters of weights
// that are saved in lower precision, under the tensor names of the model's own files:
// "exp_avg.model.norm.weight", "exp_avg_sq...." and "master....". A frozen parameter has none of
// these.
#pragma once

#include <filesystem>

#include "optim/adamw.h"

namespace antisd::inline run {

struct OptimizerSaving {
  std::int64_t steps = 0;
  std::int64_t shard_bytes = 5'000'000'000;  // a larger state is cut into such files, with an index
  int rank = 0, ranks = 1;                   // file i is written by rank i mod ranks
};

// The files are the same however many ranks there are and however they divide masters and moments.
// All ranks call it; none holds more than one block of the state at a time. RunError, after the
// last block: what this rank could not write.
void save_optimizer(const ParameterStore& parameters, const AdamW& optimizer,
                    const std::filesystem::path& folder, const OptimizerSaving& saving);

// Loads moments, step count, and the weights in full precision: from the masters in the file or,
// without masters, from the model's weights in `model_directory`, or the adapters' there. So a run
// on a GPU can be resumed on a CPU, and vice versa. InputError for what does not fit the model;
// some tensors may then have changed. All ranks call it; each reads what it holds.
void load_optimizer(CausalLm& model, AdamW& optimizer, const std::filesystem::path& folder,
                    const std::filesystem::path& model_directory);

}  // namespace antisd::inline run
