// One pass over responses or other sequences with tokens to predict: lay out, forward,
// log-probability and entropy of each target. Scoring, the update and training on documents all use
// it.
//
//   const std::vector<TargetSequence> sequences = {continuation(prompt_ids, response_ids)};
//   const Passage passage = lay_out(sequences, model.device());
//   const at::Tensor hidden = hidden_before_targets(model, passage);           // [targets, width]
//   const TokenScoreTensors scores = score_targets(model, passage, hidden, /*temperature=*/1);
//   const std::vector<TokenScores> by_sequence = to_host(passage, scores);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "algo/token_scores.h"
#include "model/causal_lm.h"
#include "ops/token_scores.h"

namespace antisd::inline inference {

// A sequence, and which of its tokens are predicted.
struct TargetSequence {
  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> targets;  // positions in ids, ascending, at least 1
  std::size_t number = 0;             // of the response or document; for the caller
  std::int64_t shared = 0;            // leading tokens in common with the sequence before it
};

// All response tokens are targets.
TargetSequence continuation(const std::vector<std::int32_t>& prompt_ids,
                            const std::vector<std::int32_t>& response_ids);

// Sequences in the model's layout, with targets grouped by sequence.
struct Passage {
  PackedBatch batch;
  at::Tensor rows;                  // int64 [targets]: the packed row of the token before it
  at::Tensor targets;               // int32 [targets]
  std::vector<std::size_t> counts;  // targets of each sequence
};

Passage lay_out(std::span<const TargetSequence> sequences, at::Device device,
                PackOptions options = {});

at::Tensor hidden_before_targets(const CausalLm& model, const Passage& passage,
                                 Pass pass = Pass::kInference, std::size_t kept_layers = 0);
TokenScoreTensors score_targets(const CausalLm& model, const Passage& passage,
                                const at::Tensor& hidden, double temperature,
                                Gradients gradients = Gradients::kNone);

// By sequence. Synchronises with the device.
std::vector<TokenScores> to_host(const Passage& passage, const TokenScoreTensors& scores);

}  // namespace antisd::inline inference
