// Importance weights of tokens that another policy sampled than the one that is updated
// (loss.rollout_correction): the sampler's arithmetic differs in rounding, and with rollout.partial
// earlier policies wrote a part of a response.
//
//   const RolloutWeights weights = rollout_weights(config.loss, old_logp, batch[r].sampling_logp);
//   loss *= weights.at(t);                         // unless weights.masked(t)
//
// The weight is a constant: nothing differentiates through it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algo/aggregation.h"
#include "algo/response.h"
#include "config/run_config.h"

namespace antisd::inline algo {

// One response, token by token; all empty for "none".
struct RolloutWeights {
  std::vector<double> ratio;   // w = exp(clamp(old - rollout, -20, 20))
  std::vector<double> weight;  // tis: min(w, C); mask: 1, or 0 where w is not within [1/C, C]
  bool masks = false;          // a weight of 0 leaves the token out of every mean
  std::int64_t cut = 0;        // tokens that C changed

  double at(std::size_t i) const { return weight.empty() ? 1 : weight[i]; }
  bool masked(std::size_t i) const { return masks && weight[i] == 0; }
  std::int64_t kept(std::int64_t tokens) const { return masks ? tokens - cut : tokens; }
};

// `old_logp`: of the policy that the update starts from, by the trainer; `rollout_logp`: as the
// sampler recorded it, of the policy that sampled the token.
RolloutWeights rollout_weights(const LossConfig& rules, std::span<const float> old_logp,
                               std::span<const float> rollout_logp);

// For "mask": the tokens of these responses that are kept, and the responses that have any. They
// need Response::before.
MeanOver kept_over(const LossConfig& rules, const ResponseBatch& batch,
                   std::span<const std::size_t> numbers);

}  // namespace antisd::inline algo
