#include "algo/clipped_loss.h"

#include <algorithm>
#include <cmath>

namespace antisd::inline algo {
namespace {

constexpr double kMaxLogRatio = 20;

bool within_limit(double log_ratio) {
  return std::abs(log_ratio) <= kMaxLogRatio;
}

}  // namespace

ClippedLoss clipped_loss(double advantage, double log_ratio, const LossConfig& rules) {
  const double ratio = std::exp(std::clamp(log_ratio, -kMaxLogRatio, kMaxLogRatio));  // r
  const double plain = -advantage * ratio;
  const double bounded = -advantage * std::clamp(ratio, 1 - rules.clip_low, 1 + rules.clip_high);
  const double ceiling = -rules.dual_clip * advantage;

  ClippedLoss result;
  result.clipped = bounded > plain;
  result.loss = result.clipped ? bounded : plain;
  result.dual_clipped = advantage < 0 && result.loss > ceiling;
  if (result.dual_clipped) result.loss = ceiling;
  // d r / d log_ratio = r, so the unclipped loss is its own derivative; where a bound applies, it
  // is 0.
  const bool flat = result.clipped || result.dual_clipped || !within_limit(log_ratio);
  result.gradient = flat ? 0 : plain;
  return result;
}

ClippedLoss cispo_loss(double advantage, double log_ratio, double new_logp,
                       const LossConfig& rules) {
  const double ratio = std::exp(std::clamp(log_ratio, -kMaxLogRatio, kMaxLogRatio));
  const double weight = std::clamp(ratio, 1 - rules.clip_low, 1 + rules.clip_high);
  return {.loss = -advantage * weight * new_logp,
          .gradient = -advantage * weight,
          .clipped = weight != ratio};
}

KlPenalty kl_penalty(double new_logp, double reference_logp, std::string_view estimator) {
  const double difference = reference_logp - new_logp;  // d
  const double held = std::clamp(difference, -kMaxLogRatio, kMaxLogRatio);
  const bool within = within_limit(difference);
  if (estimator == "k1") return {.loss = -held, .gradient = within ? 1.0 : 0.0};
  if (estimator == "k2") return {.loss = held * held / 2, .gradient = within ? -held : 0};
  return {.loss = std::expm1(held) - held, .gradient = within ? -std::expm1(held) : 0};
}

}  // namespace antisd::inline algo
