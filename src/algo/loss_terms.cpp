#include "algo/loss_terms.h"

#include <algorithm>
#include <array>

#include "algo/clipped_loss.h"

namespace antisd::inline algo {
namespace {

TokenLoss reference_kl(const TermInput& token) {
  const KlPenalty kl = kl_penalty(token.logp, token.reference);
  return {kl.loss, kl.gradient};
}

constexpr std::array kTerms = {
    LossTerm{.name = "kl_loss",
             .meaning = "KL to the reference",
             .weight = &LossConfig::kl_coef,
             .reference = true,
             .at = reference_kl},
};

}  // namespace

std::span<const LossTerm> loss_terms() {
  return kTerms;
}

bool needs_reference(const LossConfig& rules) {
  return std::ranges::any_of(
      kTerms, [&](const LossTerm& term) { return term.reference && rules.*term.weight > 0; });
}

bool has_loss_terms(const LossConfig& rules) {
  return std::ranges::any_of(kTerms, [&](const LossTerm& term) { return rules.*term.weight > 0; });
}

void add_loss_terms(const LossConfig& rules, const TermInput& token, TokenLoss& loss,
                    AddedSums& sums) {
  sums.resize(kTerms.size());
  for (std::size_t i = 0; i < kTerms.size(); ++i) {
    const double weight = rules.*kTerms[i].weight;
    const TokenLoss term = weight > 0 ? kTerms[i].at(token) : TokenLoss();
    loss.loss += weight * term.loss;
    loss.gradient += weight * term.gradient;
    sums[i] += term.loss;
  }
}

}  // namespace antisd::inline algo
