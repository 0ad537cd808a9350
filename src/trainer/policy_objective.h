// GRPO's family as an objective: the clipped loss of A - lambda phi(u) and its variants, as a
// function of each token's log-probability. algo/shaping.h has the formulas; this passes s to them
// and returns their derivative.
#pragma once

#include "algo/shaping.h"
#include "trainer/objective.h"

namespace antisd::inline trainer {

class PolicyObjective : public Objective {
 public:
  // Borrows both; account() sets token_advantage and rollout_weight of a Response after the first
  // pass over it. `off_policy`: the ratio is with respect to Response::before; otherwise it is 1.
  PolicyObjective(const Shaping& shaping, ResponseBatch& batch, bool off_policy)
      : shaping_(shaping), batch_(batch), off_policy_(off_policy) {}

  ObjectiveNeeds needs() const override { return {}; }
  Derivative differentiate(const PassView& pass) override;
  void account(std::span<const TargetSequence> sequences, const MicroBatchResult& result,
               MeanOver mean) override;

 private:
  TokenLosses losses_of(std::size_t number, const TokenScores& student, MeanOver mean) const;

  const Shaping& shaping_;
  ResponseBatch& batch_;
  bool off_policy_;
};

}  // namespace antisd::inline trainer
