// Scores that are numbers: a model whose weights are not says nothing, and must not seem to.
//
//   const std::vector<TokenScores> scores = score(model, requests);
//   check_finite(model, scores, [&](std::size_t i) { return names[i]; });
#pragma once

#include <functional>
#include <span>
#include <string>

#include "algo/token_scores.h"
#include "model/causal_lm.h"

namespace antisd::inline inference {

// RunError for the first scores that are not finite: whose they are, by `name_of` their index, and
// the weight that is to blame where one holds such a number itself.
void check_finite(const CausalLm& model, std::span<const TokenScores> scores,
                  const std::function<std::string(std::size_t index)>& name_of);

// The name of the first tensor that holds NaN or infinity, as the model's files call it; empty for
// none. Reads all weights.
std::string find_non_finite_weight(const CausalLm& model);

}  // namespace antisd::inline inference
