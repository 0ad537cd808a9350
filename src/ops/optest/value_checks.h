// Ops without a gradient. Each check returns the largest error in units of what is allowed: up to 1
// is right.
#pragma once

#include "ops/attention_inputs.h"
#include "ops/optest/op_case.h"
#include "ops/sampling.h"

namespace antisd::inline ops {

// Sampling noise must agree bit for bit with CounterRng; 0 or a large number.
double uniform_noise_error(at::Device device);

// Three steps of AdamW, their result beside the textbook formula in double. Moments and masters
// are fp32 on every backend, so the tolerance is fp32's; a 16-bit weight is its master, rounded.
double adamw_error(const Backend& backend, std::int64_t count);

double squared_norms_error(const Backend& backend);

// Sequences of several lengths whose pages lie in the cache in disorder; keys and values get there
// through store_kv. The largest error in units of the tolerance.
double decode_attention_error(AttentionShape shape, std::int64_t window, const Backend& backend);

// Tokens whose cumulative range misses the noise by more than rounding, or log-probabilities that
// are off.
double sample_error(const SamplingSettings& settings, at::Device device);

}  // namespace antisd::inline ops
