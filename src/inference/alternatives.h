// The likeliest tokens of a step, beside the one that was sampled.
#pragma once

#include <vector>

#include "inference/decoder.h"
#include "ops/cpu_sampling.h"

namespace antisd::inline inference {

// The `count` likeliest tokens, lower ids first where they are equal. `sampled` is the row's own
// token: its log-probability is known, and those of the others follow from the logits.
std::vector<Alternative> likeliest(const float* logits, std::int64_t vocabulary, int count,
                                   const SampledToken& sampled);

}  // namespace antisd::inline inference
