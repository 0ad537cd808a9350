// The loss of one token and its derivative with respect to the new log-probability. The model's
// backward pass needs nothing else.
#pragma once

#include <string_view>

#include "config/run_config.h"

namespace antisd::inline algo {

struct ClippedLoss {
  double loss = 0;
  double gradient = 0;        // d loss / d new log-probability
  bool clipped = false;       // the clipped ratio gave the larger loss
  bool dual_clipped = false;  // the bound on negative advantages applied
};

// max(-A r, -A clip(r, 1 - clip_low, 1 + clip_high)), for A < 0 at most -dual_clip A, with r =
// exp(clamp(log_ratio, -20, 20)) and log_ratio = new - old.
ClippedLoss clipped_loss(double advantage, double log_ratio, const LossConfig& rules);

// CISPO: -A w log p with the constant w = clip(r, 1 - clip_low, 1 + clip_high).
ClippedLoss cispo_loss(double advantage, double log_ratio, double new_logp,
                       const LossConfig& rules);

// Schulman's estimators of KL(student, reference) with d = reference - new, clamped to +-20:
// k1 = -d, k2 = d^2 / 2, k3 = e^d - d - 1. k2 and k3 are never negative, and 0 with slope 0 where
// both agree.
struct KlPenalty {
  double loss = 0;
  double gradient = 0;  // d loss / d new log-probability
};
KlPenalty kl_penalty(double new_logp, double reference_logp, std::string_view estimator = "k3");

}  // namespace antisd::inline algo
