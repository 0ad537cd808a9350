// SDPO's gradient: the divergence between student and teacher on the student's likeliest tokens,
// straight from hidden states, a block of tokens at a time.
//
//   const Distillation d = distil(student_hidden, model.head().weight, teacher_hidden,
//   teacher.head().weight,
//                                 options);
//   student_hidden.backward(d.hidden_gradient);     // and d.head_gradient to the head
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace antisd {

struct DistillationOptions {
  double temperature = 1;
  std::int64_t vocabulary = 0;   // rows of the head that are tokens
  std::int64_t top_k = 100;      // of the student; the rest is one bucket
  double alpha = 0.5;            // see algo/sdpo.h
  std::int64_t mean_tokens = 1;  // that the mean is over
  double gradient_scale = 1;     // both gradients are multiplied by it
  std::int64_t block_tokens = 256;
};

struct Distillation {
  std::vector<double> loss;    // of each token, before the mean
  at::Tensor hidden_gradient;  // [n, width]: d (mean loss) / d student_hidden
  at::Tensor head_gradient;    // [rows, width] fp32, through the student alone
};

// Both hidden states: [n, width], row i before the same response token i. No autograd is involved:
// logits of a block of tokens exist only while they are needed.
Distillation distil(const at::Tensor& student_hidden, const at::Tensor& student_head,
                    const at::Tensor& teacher_hidden, const at::Tensor& teacher_head,
                    const DistillationOptions& options);

}  // namespace antisd
