// The input of benchmarks: a model with random weights, generated on its device so that billions
// take seconds, and synthetic sequences.
#pragma once

#include <cstdint>
#include <string>

#include "model/causal_lm.h"

namespace antisd::bench {

// Norms are 1; everything else is normal with standard deviation 0.02. `dtype`: as for
// compute_dtype.
CausalLm random_model(const ModelShape& shape, at::Device device,
                      const std::string& dtype = "auto");

// The token at a position of a synthetic sequence. Two sequences differ from their first token on.
inline std::int32_t made_up_id(std::int64_t sequence, std::int64_t position,
                               std::int64_t vocabulary) {
  return static_cast<std::int32_t>((sequence * 7919 + position * 104'729) % vocabulary);
}

}  // namespace antisd::bench
