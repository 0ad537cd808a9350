#include "trainer/distil_objective.h"

#include "core/check.h"
#include "trainer/distillation.h"

namespace antisd::inline trainer {

Derivative DistilObjective::differentiate(const PassView& pass) {
  Distillation distilled =
      distil(pass.hidden, model_.head().weight, pass.teacher_hidden, teacher_head_,
             {.temperature = temperature_,
              .vocabulary = std::min(model_.shape().vocabulary, teacher_head_.size(0)),
              .rules = method_.distillation,
              .mean_tokens = pass.mean.tokens,
              .gradient_scale = pass.scale});
  Derivative derivative{.loss = std::move(distilled.loss),
                        .by_hidden = distilled.hidden_gradient,
                        .by_head = distilled.head_gradient};
  if (!has_loss_terms(method_.loss)) return derivative;
  const float share = 1.0F / static_cast<float>(pass.mean.tokens);  // fp32, like the divergence's
  auto loss = derivative.loss.begin();
  for (std::size_t s = 0; s < pass.sequences.size(); ++s) {
    for (const TokenLoss& token : terms_of(pass.sequences[s].number, pass.student[s]).tokens) {
      *loss++ += token.loss;
      derivative.by_logp.push_back(static_cast<float>(token.gradient) * share);
    }
  }
  return derivative;
}

void DistilObjective::account(std::span<const TargetSequence> sequences,
                              const MicroBatchResult& result, MeanOver /*mean*/) {
  auto next = result.loss.begin();
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const std::vector<float>& logp = result.student[s].logp;
    TokenLosses losses;
    losses.loss.assign(next, next + std::ssize(logp));
    next += std::ssize(logp);
    if (has_loss_terms(method_.loss))
      losses.added = terms_of(sequences[s].number, result.student[s]).added;
    add_sums(sums, losses, result.student[s].entropy);
  }
}

DistilObjective::Terms DistilObjective::terms_of(std::size_t number,
                                                 const TokenScores& student) const {
  const std::vector<float>& logp = student.logp;
  std::span<const float> reference;
  if (needs_reference(method_.loss)) {
    reference = batch_[number].reference.logp;
    ANTISD_CHECK_EQ(reference.size(), logp.size());
  }
  Terms terms;
  for (std::size_t i = 0; i < logp.size(); ++i) {
    TokenLoss token{0, 0};
    add_loss_terms(method_.loss,
                   {.logp = logp[i],
                    .reference = reference.empty() ? 0 : reference[i],
                    .entropy = student.entropy[i]},
                   token, terms.added);
    terms.tokens.push_back(token);
  }
  return terms;
}

}  // namespace antisd::inline trainer
