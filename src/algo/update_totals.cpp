#include "algo/update_totals.h"

#include <cmath>

namespace antisd {

void UpdateTotals::add(const TokenLosses& losses, std::span<const float> student_entropy) {
  const TokenAdvantages& tokens = losses.advantages;
  for (const double value : losses.loss)
    loss.add(value);
  for (const double value : tokens.u)
    u.add(value);
  for (const double value : tokens.phi)
    phi.add(value);
  for (const double value : tokens.advantage) {
    advantage.add(value);
    term += std::abs(value - tokens.group_advantage);
    group_advantage += std::abs(tokens.group_advantage);
  }
  for (const double value : student_entropy)
    entropy.add(value);
  clipped += static_cast<double>(losses.clipped);
  dual_clipped += static_cast<double>(losses.dual_clipped);
  log_ratio += losses.log_ratio;
  kl += losses.kl;
}

void UpdateTotals::add(const UpdateTotals& other) {
  loss.add(other.loss);
  advantage.add(other.advantage);
  u.add(other.u);
  phi.add(other.phi);
  entropy.add(other.entropy);
  clipped += other.clipped;
  dual_clipped += other.dual_clipped;
  log_ratio += other.log_ratio;
  kl += other.kl;
  term += other.term;
  group_advantage += other.group_advantage;
}

}  // namespace antisd
