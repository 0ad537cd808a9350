// GRPO's family as an objective: the clipped loss of A - lambda phi(u) and its variants, as a
// function of each token's log-probability. algo/shaping.h has the formulas; this passes s to them
// and returns their derivative.
#pragma once

#include "algo/shaping.h"
#include "trainer/objective.h"

namespace antisd::inline trainer {

class PolicyObjective : public Objective {
 public:
  // Borrows both; writes Response::token_advantage in the first pass over each response.
  // `off_policy`: the ratio is with respect to Response::before; otherwise it is 1.
  PolicyObjective(const Shaping& shaping, ResponseBatch& batch, bool off_policy)
      : shaping_(shaping), batch_(batch), off_policy_(off_policy) {}

  ObjectiveNeeds needs() const override { return {}; }
  Derivative differentiate(const PassView& pass) override;

 private:
  const Shaping& shaping_;
  ResponseBatch& batch_;
  bool off_policy_;
};

}  // namespace antisd::inline trainer
