// What the tokens of an update add up to, for the record: fed response by response, added up over
// micro-batches and processes.
#pragma once

#include <span>

#include "algo/moments.h"
#include "algo/shaping.h"

namespace antisd {

struct UpdateTotals {
  Moments loss, advantage, u, phi;
  Moments entropy;                       // H_S
  double clipped = 0, dual_clipped = 0;  // tokens
  double log_ratio = 0, kl = 0;          // sums
  double term = 0, group_advantage = 0;  // sums of |A_{i,t} - A_i| and of |A_i|

  void add(const TokenLosses& losses, std::span<const float> student_entropy = {});
  void add(const UpdateTotals& other);

  // Means over the tokens; NaN of nothing.
  double mean_loss() const { return loss.mean(); }             // with kl_coef x the KL
  double clip_fraction() const { return clipped / tokens(); }  // actor/pg_clipfrac
  double dual_clip_fraction() const { return dual_clipped / tokens(); }
  double policy_kl() const { return -log_ratio / tokens(); }  // actor/ppo_kl
  double reference_kl() const { return kl / tokens(); }
  double term_ratio() const { return term / group_advantage; }  // antisd/term_ratio
  double tokens() const { return static_cast<double>(loss.count); }
};

}  // namespace antisd
