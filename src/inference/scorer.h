// Log-probability and entropy of every token of given responses after given prompts.
//
//   const std::vector<ScoreRequest> requests = {{prompt_ids, response_ids}};
//   const std::vector<TokenScores> scores = score(model, requests);
//   scores[0].logp[3];  // log p(4th response token | prompt, first three)
//
// Scores are indexed by response position. Sequences with the same leading tokens (a group's
// prompt, equal teacher contexts) compute that prefix once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algo/token_scores.h"
#include "model/causal_lm.h"

namespace antisd::inline inference {

struct ScoreRequest {
  std::vector<std::int32_t> prompt_ids, response_ids;
};

struct ScoreOptions {
  double temperature = 1;  // all scores are under logits / temperature
  std::int64_t max_batch_tokens =
      32'768;  // sequences are packed up to this; a longer one by itself
  PackOptions pack;
  // Only part `part` of `parts` of the work, all parts being about as long; the other requests'
  // results are empty. On a CPU the results are the bits that the whole work would give.
  std::size_t part = 0, parts = 1;
};

// No gradients. On the CPU each thread scores its own small batches. InputError for an empty prompt
// or response, an id outside the vocabulary, or a sequence that is too long.
std::vector<TokenScores> score(const CausalLm& model, std::span<const ScoreRequest> requests,
                               const ScoreOptions& options = {});

// Checks one request as score() does.
void check_request(const CausalLm& model, const ScoreRequest& request);

}  // namespace antisd::inline inference
