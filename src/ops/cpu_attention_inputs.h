// The CPU half of attention_inputs: one pass over the rows, nothing stored between split, norm and
// rotation.
#pragma once

#include <array>

#include "ops/attention_inputs.h"

namespace antisd::inline ops {

// fp32 and contiguous. `weights` and `inverse_rms` are of queries, then of keys; undefined without
// a norm.
struct CpuAttentionInputs {
  AttentionShape shape;
  QkNorm norm = QkNorm::kNone;
  double eps = 0;
  std::array<at::Tensor, 2> weights;
  at::Tensor cosine, sine, positions;
};

// Fills q, k, v and returns the inverse root mean squares: [tokens * heads], or [tokens] where a
// projection is normed as a whole.
std::array<at::Tensor, 2> cpu_attention_inputs(const CpuAttentionInputs& in, const at::Tensor& qkv,
                                               const std::array<at::Tensor, 3>& parts);

// Fills dqkv and returns the gradients of the weights, summed over fixed runs of tokens in order:
// the same bits whatever the number of threads. qkv may be undefined without a norm.
std::array<at::Tensor, 2> cpu_attention_inputs_backward(
    const CpuAttentionInputs& in, const std::array<at::Tensor, 3>& gradients, const at::Tensor& qkv,
    const std::array<at::Tensor, 2>& inverse_rms, const at::Tensor& dqkv);

}  // namespace antisd::inline ops
