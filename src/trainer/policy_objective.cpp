#include "trainer/policy_objective.h"

#include "core/check.h"

namespace antisd::inline trainer {

TokenLosses PolicyObjective::losses_of(std::size_t number, const TokenScores& student,
                                       MeanOver mean) const {
  const Response& response = batch_[number];
  StudentTokens tokens{
      .logp = student.logp, .reference = response.reference.logp, .entropy = student.entropy};
  if (off_policy_) {
    ANTISD_CHECK_EQ(response.before.logp.size(), student.logp.size());
    tokens.old_logp = response.before.logp;
  }
  return token_losses(shaping_, response, tokens, mean);
}

Derivative PolicyObjective::differentiate(const PassView& pass) {
  Derivative derivative;
  for (std::size_t s = 0; s < pass.sequences.size(); ++s) {
    const TokenLosses losses = losses_of(pass.sequences[s].number, pass.student[s], pass.mean);
    derivative.loss.insert(derivative.loss.end(), losses.loss.begin(), losses.loss.end());
    derivative.by_logp.insert(derivative.by_logp.end(), losses.gradient.begin(),
                              losses.gradient.end());
  }
  return derivative;
}

// Computes the losses again: they are a few operations per token, and the derivative of a response
// may have been another rank's work.
void PolicyObjective::account(std::span<const TargetSequence> sequences,
                              const MicroBatchResult& result, MeanOver mean) {
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    Response& response = batch_[sequences[s].number];
    TokenLosses losses = losses_of(sequences[s].number, result.student[s], mean);
    add_sums(sums, losses, result.student[s].entropy);
    if (response.token_advantage.empty())
      response.token_advantage = std::move(losses.advantages.advantage);
    if (response.rollout_weight.empty()) response.rollout_weight = std::move(losses.rollout.weight);
  }
}

}  // namespace antisd::inline trainer
