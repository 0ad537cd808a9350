// A sparse layer: each token goes to its k likeliest experts, gated units whose products are
// weighted and summed.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace antisd::inline ops {

struct ExpertWeights {
  at::Tensor router;   // [experts, hidden]
  at::Tensor gate_up;  // [experts, 2 * width, hidden], gate first
  at::Tensor down;     // [experts, hidden, width]
};

// x: [tokens, hidden]. The router's softmax is over all experts in fp32; `normalise` divides the
// chosen probabilities by their sum. Tokens are sorted by expert and each matrix product runs once
// over all of them.
at::Tensor experts(const at::Tensor& x, const ExpertWeights& weights,
                   std::int64_t experts_per_token, bool normalise);

}  // namespace antisd::inline ops
