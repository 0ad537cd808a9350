// Log-probability and entropy of given tokens straight from hidden states: the centre of this
// project. The logits of a block of tokens and a block of the vocabulary exist only while they are
// folded into running statistics, in fp32, and are recomputed in the backward pass. The matrix
// [tokens, vocabulary] is never held.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "ops/gradients.h"

namespace antisd::inline ops {

struct TokenScoreTensors {
  at::Tensor logp;     // fp32 [n]: log-probability of the target
  at::Tensor entropy;  // fp32 [n], nats, at least 0
};

struct ScoreBlocks {
  std::int64_t tokens = 0;  // 0: what suits the device
  std::int64_t vocabulary = 0;
};

// What suits the device.
ScoreBlocks score_blocks(at::Device device, bool backward);

// hidden: [n, width]; head: [rows, width], of which the first `vocabulary` rows are tokens and the
// rest padding; targets: int32 [n]. All under logits / temperature. Gradients go to hidden and
// head.
TokenScoreTensors token_scores(const at::Tensor& hidden, const at::Tensor& head,
                               const at::Tensor& targets, double temperature,
                               std::int64_t vocabulary, Gradients gradients,
                               ScoreBlocks blocks = {});

}  // namespace antisd::inline ops
