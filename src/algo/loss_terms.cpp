#include "algo/loss_terms.h"

#include <algorithm>
#include <array>

#include "algo/clipped_loss.h"

namespace antisd::inline algo {
namespace {

TokenLoss reference_kl(const TermInput& token, const LossConfig& rules) {
  const KlPenalty kl = kl_penalty(token.logp, token.reference, rules.kl_estimator);
  return {kl.loss, kl.gradient};
}

// -H. Its derivative by the logits is the mean over the distribution of (log p + H) d log p, which
// one sampled token estimates without bias; so no second pass over the vocabulary is needed.
TokenLoss negative_entropy(const TermInput& token, const LossConfig& /*rules*/) {
  return {-token.entropy, token.logp + token.entropy};
}

constexpr std::array kTerms = {
    LossTerm{.name = "kl_loss",
             .meaning = "KL to the reference",
             .weight = &LossConfig::kl_coef,
             .reference = true,
             .at = reference_kl},
    LossTerm{.name = "entropy_bonus",
             .meaning = "entropy bonus",
             .weight = &LossConfig::entropy_coef,
             .at = negative_entropy},
};

}  // namespace

std::span<const LossTerm> loss_terms() {
  return kTerms;
}

bool needs_reference(const LossConfig& rules) {
  return std::ranges::any_of(
      kTerms, [&](const LossTerm& term) { return term.reference && rules.*term.weight > 0; });
}

bool keeps_reference(const RunConfig& config) {
  return needs_reference(config.loss) || config.reward.kl_coef > 0;
}

bool has_loss_terms(const LossConfig& rules) {
  return std::ranges::any_of(kTerms, [&](const LossTerm& term) { return rules.*term.weight > 0; });
}

void add_loss_terms(const LossConfig& rules, const TermInput& token, TokenLoss& loss,
                    AddedSums& sums, double factor) {
  sums.resize(kTerms.size());
  for (std::size_t i = 0; i < kTerms.size(); ++i) {
    const double weight = rules.*kTerms[i].weight;
    const TokenLoss term = weight > 0 ? kTerms[i].at(token, rules) : TokenLoss();
    loss.loss += weight * term.loss;
    loss.gradient += weight * term.gradient;
    sums[i] += factor * term.loss;
  }
}

}  // namespace antisd::inline algo
