// Rejects scores that are NaN or infinite: a model with broken weights must not give results.
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

// RunError for the first scores that are not finite: it names them by `name_of` their index, and
// the first weight that holds such a value, if there is one.
void check_finite(const CausalLm& model, std::span<const TokenScores> scores,
                  const std::function<std::string(std::size_t index)>& name_of);

// The name of the first tensor with NaN or infinity, as in the model's files; empty if there is
// none. Reads all weights.
std::string find_non_finite_weight(const CausalLm& model);

}  // namespace antisd::inline inference
