// SDPO as an objective: the divergence between student and teacher on the student's most likely
// tokens, as a function of hidden states. Its teacher runs in the same pass, so a step has no other
// teacher pass.
#pragma once

#include <cstdint>
#include <vector>

#include "algo/shaping.h"
#include "model/causal_lm.h"
#include "trainer/objective.h"

namespace antisd::inline trainer {

struct DistillationOptions {
  double temperature = 1;
  std::int64_t vocabulary = 0;   // rows of the head that are tokens
  std::int64_t top_k = 100;      // of the student; the rest is one bucket
  double alpha = 0.5;            // see algo/sdpo.h
  std::int64_t mean_tokens = 1;  // number of tokens in the mean
  double gradient_scale = 1;     // factor on both gradients
  std::int64_t block_tokens = 256;
};

struct Distillation {
  std::vector<double> loss;    // per token, before the mean
  at::Tensor hidden_gradient;  // [n, width]: d (mean loss) / d student_hidden
  at::Tensor head_gradient;    // [rows, width] fp32, only through the student
};

// Both hidden states: [n, width]; row i is before response token i. Without autograd: the logits
// exist only for one block of tokens at a time.
Distillation distil(const at::Tensor& student_hidden, const at::Tensor& student_head,
                    const at::Tensor& teacher_hidden, const at::Tensor& teacher_head,
                    const DistillationOptions& options);

class SdpoObjective : public Objective {
 public:
  // Borrows all. Reads Response::reference: see needs_reference().
  SdpoObjective(const Method& method, const CausalLm& model, const CausalLm& teacher,
                double temperature, const ResponseBatch& batch)
      : method_(method),
        model_(model),
        teacher_(teacher),
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
  const CausalLm& teacher_;
  double temperature_;
  const ResponseBatch& batch_;
};

}  // namespace antisd::inline trainer
