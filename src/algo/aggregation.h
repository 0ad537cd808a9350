// How the losses of tokens become one number: loss.aggregation.
//
// The mean over tokens of loss_t x aggregation_factor() is the aggregated loss, so that every sum
// over tokens stays a plain one. For token-mean the factor is exactly 1.
#pragma once

#include <cstdint>

#include "config/run_config.h"

namespace antisd::inline algo {

// What the mean of a mini-batch's losses is over, counted over all micro-batches.
struct MeanOver {
  std::int64_t tokens = 1, sequences = 1;
};

// Of the tokens of a response.
double aggregation_factor(const LossConfig& rules, std::int64_t response_tokens, MeanOver mean);

}  // namespace antisd::inline algo
