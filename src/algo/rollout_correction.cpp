#include "algo/rollout_correction.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace antisd::inline algo {
namespace {

constexpr double kMostLogWeight = 20;

}  // namespace

RolloutWeights rollout_weights(const LossConfig& rules, std::span<const float> old_logp,
                               std::span<const float> rollout_logp) {
  RolloutWeights weights;
  if (rules.rollout_correction == "none") return weights;
  ANTISD_CHECK_EQ(old_logp.size(), rollout_logp.size());
  weights.masks = rules.rollout_correction == "mask";
  const double cap = rules.rollout_correction_cap;  // C
  for (std::size_t i = 0; i < old_logp.size(); ++i) {
    const double log_ratio = static_cast<double>(old_logp[i]) - rollout_logp[i];
    const double ratio = std::exp(std::clamp(log_ratio, -kMostLogWeight, kMostLogWeight));
    const bool cut = ratio > cap || (weights.masks && ratio * cap < 1);
    weights.ratio.push_back(ratio);
    weights.cut += cut;
    if (weights.masks) {
      weights.weight.push_back(cut ? 0 : 1);
    } else {
      weights.weight.push_back(std::min(ratio, cap));
    }
  }
  return weights;
}

MeanOver kept_over(const LossConfig& rules, const ResponseBatch& batch,
                   std::span<const std::size_t> numbers) {
  MeanOver mean{.tokens = 0, .sequences = 0};
  for (const std::size_t r : numbers) {
    const Response& response = batch[r];
    const std::int64_t kept = rollout_weights(rules, response.before.logp, response.sampling_logp)
                                  .kept(std::ssize(response.ids));
    mean.tokens += kept;
    mean.sequences += kept > 0;
  }
  return mean;
}

}  // namespace antisd::inline algo
