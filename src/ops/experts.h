// A sparse layer: each token goes to its k most likely experts, which are gated units; their
// outputs are weighted and summed.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "ops/grouped_linear.h"
#include "ops/lora.h"
#include "ops/quantized_weight.h"

namespace antisd::inline ops {

struct ExpertWeights {
  at::Tensor router;   // [experts, hidden]
  at::Tensor gate_up;  // [experts, 2 * width, hidden], gate first
  at::Tensor down;     // [experts, hidden, width]
  QuantizedWeight quantized_gate_up = {}, quantized_down = {};  // instead of those
  const LoraWeights* gate_up_adapter = nullptr;
  const LoraWeights* down_adapter = nullptr;
};

// x: [tokens, hidden]. The router's softmax is over all experts in fp32; `normalise` divides the
// chosen probabilities by their sum. Tokens are sorted by expert, so each matrix product is one
// grouped call.
at::Tensor experts(const at::Tensor& x, const ExpertWeights& weights,
                   std::int64_t experts_per_token, bool normalise,
                   GroupedCode code = GroupedCode::kChosen);

}  // namespace antisd::inline ops
