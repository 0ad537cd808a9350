// A model with random weights, for benchmarks: drawn where it lies, so that billions take seconds.
#pragma once

#include <string>

#include "model/causal_lm.h"

namespace antisd::bench {

// Norms are 1; everything else is normal with a deviation of 0.02.
// `dtype`: as compute_dtype takes it.
CausalLm random_model(const ModelShape& shape, at::Device device,
                      const std::string& dtype = "auto");

}  // namespace antisd::bench
