// Terms that are added to every token's loss, for any method: each is a row of a table with its
// weight from [loss]. To add one, add a row here and describe its weight in config/run_config.cpp;
// it is then summed over processes and recorded as actor/NAME.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "config/run_config.h"

namespace antisd::inline algo {

// The loss of one token and its derivative with respect to the new log-probability.
struct TokenLoss {
  double loss = 0, gradient = 0;
};

// The inputs of a term.
struct TermInput {
  double logp = 0;       // of the update's own forward pass
  double reference = 0;  // of the frozen reference, where needs_reference()
  double entropy = 0;    // H_S, of the same pass
};

struct LossTerm {
  std::string_view name;       // of the sum and of the metric actor/NAME
  std::string_view meaning;    // in the method's description: "0.1 KL to the reference"
  double LossConfig::*weight;  // 0: the term is off
  bool reference = false;      // reads TermInput::reference
  TokenLoss (*at)(const TermInput& token, const LossConfig& rules);
};

std::span<const LossTerm> loss_terms();

// Whether a term with a nonzero weight reads the reference's log-probabilities.
bool needs_reference(const LossConfig& rules);
// Whether a run keeps the reference: a term or the reward reads it.
bool keeps_reference(const RunConfig& config);
// Whether any term has a nonzero weight.
bool has_loss_terms(const LossConfig& rules);

// One per row: the sum of its values, before the weight.
using AddedSums = std::vector<double>;

// Adds every term's weighted loss and gradient to the token's loss, and its value times `factor`
// (algo/aggregation.h) to the sums.
void add_loss_terms(const LossConfig& rules, const TermInput& token, TokenLoss& loss,
                    AddedSums& sums, double factor = 1);

}  // namespace antisd::inline algo
