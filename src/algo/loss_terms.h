// What is added to every token's loss, whatever the method: each term with its weight of [loss], a
// row of a table. A new one is a row here and the weight's description in config/run_config.cpp; it
// is then summed over processes and recorded as actor/NAME.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "config/run_config.h"

namespace antisd::inline algo {

// The loss of one token and its derivative by the new log-probability.
struct TokenLoss {
  double loss = 0, gradient = 0;
};

// What a term may look at.
struct TermInput {
  double logp = 0;       // of the update's own forward pass
  double reference = 0;  // of the frozen reference, where needs_reference()
};

struct LossTerm {
  std::string_view name;       // of the sum, and of the metric actor/NAME
  std::string_view meaning;    // in the method's description: "0.1 KL to the reference"
  double LossConfig::*weight;  // 0: the term is absent
  bool reference = false;      // reads TermInput::reference
  TokenLoss (*at)(const TermInput& token);
};

std::span<const LossTerm> loss_terms();

// Whether a term with a weight reads the frozen reference's log-probabilities.
bool needs_reference(const LossConfig& rules);
// Whether any term has a weight.
bool has_loss_terms(const LossConfig& rules);

// One for each row: the sum of its values, before the weight.
using AddedSums = std::vector<double>;

// Adds every term's weighted loss and gradient to the token's, and its value to the sums.
void add_loss_terms(const LossConfig& rules, const TermInput& token, TokenLoss& loss,
                    AddedSums& sums);

}  // namespace antisd::inline algo
