// From logits to tokens. The noise decides alone: the same logits, settings and number give the
// same token on every device, up to the rounding of sums.
//
//   const SampledTokens next = sample(logits, vocabulary, {.temperature = 0.7, .top_p = 0.95},
//                                     uniform_noise(rng, places));
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace antisd::inline ops {

// Applied in this order, as transformers does: temperature, top-k, top-p, min-p.
struct SamplingSettings {
  double temperature = 1;  // 0: greedy, the first of the likeliest tokens
  double top_p = 1;        // the fewest likeliest tokens whose mass reaches this; at least one
  double min_p = 0;        // tokens at least this likely relative to the likeliest
  std::int64_t top_k = 0;  // exactly this many likeliest tokens; 0: all
  bool operator==(const SamplingSettings&) const = default;

  bool filters() const { return top_p < 1 || min_p > 0 || top_k > 0; }
};

// InputError for settings that no distribution has.
void check_sampling(const SamplingSettings& settings);

struct SampledTokens {
  at::Tensor ids;       // int32 [n]
  at::Tensor logp;      // fp32 [n]: under the distribution sampled from; 0 where greedy
  at::Tensor raw_logp;  // fp32 [n]: the model's own, temperature 1 and no filter
};

// logits: fp32 [n, rows], contiguous, of which the first `vocabulary` columns are tokens and the
// rest padding that is never sampled; noise: fp64 [n] in [0, 1). The token is the smallest id whose
// cumulative kept mass, in the order of ids, exceeds noise * kept mass. Of tokens equally likely,
// those of lower ids count as likelier. Where logits are not finite the log-probabilities are NaN.
SampledTokens sample(const at::Tensor& logits, std::int64_t vocabulary,
                     const SamplingSettings& settings, const at::Tensor& noise);

}  // namespace antisd::inline ops
