// SDPO and on-policy distillation with a divergence as objectives: the divergence between student
// and teacher at every token. A teacher that is the student, or follows it, runs in the same pass;
// another model has looked at the responses before the update (trainer/teacher_states.h).
#pragma once

#include <vector>

#include "algo/shaping.h"
#include "model/causal_lm.h"
#include "trainer/objective.h"

namespace antisd::inline trainer {

class DistilObjective : public Objective {
 public:
  // Borrows all but the teacher's head, [rows, its width]. Reads Response::reference: see
  // needs_reference().
  DistilObjective(const Method& method, const CausalLm& model, at::Tensor teacher_head,
                  double temperature, const ResponseBatch& batch)
      : method_(method),
        model_(model),
        teacher_head_(std::move(teacher_head)),
        temperature_(temperature),
        batch_(batch) {}

  ObjectiveNeeds needs() const override {
    return {.gradient_by_logp = has_loss_terms(method_.loss), .teacher = true};
  }
  Derivative differentiate(const PassView& pass) override;
  void account(std::span<const TargetSequence> sequences, const MicroBatchResult& result,
               MeanOver mean) override;

 private:
  // The weighted loss terms besides the divergence, of one response.
  struct Terms {
    std::vector<TokenLoss> tokens;
    AddedSums added;
  };
  Terms terms_of(std::size_t number, const TokenScores& student) const;

  const Method& method_;
  const CausalLm& model_;
  at::Tensor teacher_head_;
  double temperature_;
  const ResponseBatch& batch_;
};

}  // namespace antisd::inline trainer
