// From logits to tokens. Only the noise is random: the same logits, settings and noise give the
// same token on every device, up to the rounding of sums.
//
//   const SampledTokens next = sample(logits, vocabulary, {.temperature = 0.7, .top_p = 0.95},
//                                     uniform_noise(rng, places));
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace antisd::inline ops {

// Applied in this order, as in transformers: temperature, top-k, top-p, min-p.
struct SamplingSettings {
  double temperature = 1;  // 0: greedy, the first of the most likely tokens
  double top_p = 1;        // the smallest set of most likely tokens with this mass; at least one
  double min_p = 0;        // tokens at least this likely relative to the most likely one
  std::int64_t top_k = 0;  // exactly this many most likely tokens; 0: all
  bool operator==(const SamplingSettings&) const = default;

  bool filters() const { return top_p < 1 || min_p > 0 || top_k > 0; }
};

// InputError for invalid settings.
void check_sampling(const SamplingSettings& settings);

struct SampledTokens {
  at::Tensor ids;       // int32 [n]
  at::Tensor logp;      // fp32 [n]: under the sampling distribution; 0 if greedy
  at::Tensor raw_logp;  // fp32 [n]: the model's own, temperature 1 and no filter
};

// logits: fp32 [n, rows], contiguous; the first `vocabulary` columns are tokens, the rest is
// padding that is never sampled; noise: fp64 [n] in [0, 1). The token is the smallest id whose
// cumulative kept mass, in the order of ids, exceeds noise * kept mass. Of equally likely tokens,
// lower ids count as more likely. If logits are not finite, the log-probabilities are NaN.
SampledTokens sample(const at::Tensor& logits, std::int64_t vocabulary,
                     const SamplingSettings& settings, const at::Tensor& noise);

}  // namespace antisd::inline ops
