// The divergence between student and teacher at every token of a micro-batch, as a function of
// hidden states, and its gradient. Logits exist only for one block of tokens at a time.
//
//   const Distillation found = distil(hidden, model.head().weight, teacher_hidden,
//                                     teacher.head().weight, {.vocabulary = 151'936});
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "algo/token_divergence.h"

namespace antisd::inline trainer {

struct DistillationOptions {
  double temperature = 1;
  // Rows of both heads that are tokens. Of models whose embeddings are padded to different numbers
  // of rows, those that both have: the others are no tokens.
  std::int64_t vocabulary = 0;
  DivergenceRules rules = {};
  std::int64_t mean_tokens = 1;  // number of tokens in the mean
  double gradient_scale = 1;     // factor on both gradients
  std::int64_t block_tokens = 256;
};

struct Distillation {
  std::vector<double> loss;    // per token, before the mean
  at::Tensor hidden_gradient;  // [n, width]: d (mean loss) / d student_hidden
  at::Tensor head_gradient;    // [rows, width] fp32, only through the student
};

// Both hidden states have n rows; row i is before response token i. Their widths may differ.
// Without autograd.
Distillation distil(const at::Tensor& student_hidden, const at::Tensor& student_head,
                    const at::Tensor& teacher_hidden, const at::Tensor& teacher_head,
                    const DistillationOptions& options);

}  // namespace antisd::inline trainer
