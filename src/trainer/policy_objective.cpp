#include "trainer/policy_objective.h"

#include "core/check.h"

namespace antisd::inline trainer {

Derivative PolicyObjective::differentiate(const PassView& pass) {
  Derivative derivative;
  for (std::size_t s = 0; s < pass.sequences.size(); ++s) {
    Response& response = batch_[pass.sequences[s].number];
    const TokenScores& student = pass.student[s];
    StudentTokens tokens{.logp = student.logp, .reference = response.reference.logp};
    if (off_policy_) {
      ANTISD_CHECK_EQ(response.before.logp.size(), student.logp.size());
      tokens.old_logp = response.before.logp;
    }
    const TokenLosses losses = token_losses(shaping_, response, tokens, pass.mean.tokens);
    derivative.loss.insert(derivative.loss.end(), losses.loss.begin(), losses.loss.end());
    derivative.by_logp.insert(derivative.by_logp.end(), losses.gradient.begin(),
                              losses.gradient.end());
    add_sums(sums, losses, student.entropy);
    if (response.token_advantage.empty()) response.token_advantage = losses.advantages.advantage;
  }
  return derivative;
}

}  // namespace antisd::inline trainer
