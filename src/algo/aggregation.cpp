#include "algo/aggregation.h"

#include "core/check.h"

namespace antisd::inline algo {

double aggregation_factor(const LossConfig& rules, std::int64_t response_tokens, MeanOver mean) {
  if (rules.aggregation == "token-mean") return 1;
  ANTISD_CHECK_LT(0, mean.sequences);
  ANTISD_CHECK_LT(0, response_tokens);
  // Tokens for each response of the batch: what turns a mean over tokens into one over responses.
  const double by_sequence = static_cast<double>(mean.tokens) / static_cast<double>(mean.sequences);
  if (rules.aggregation == "seq-mean-token-mean")
    return by_sequence / static_cast<double>(response_tokens);
  if (rules.aggregation == "seq-mean-token-sum") return by_sequence;
  ANTISD_CHECK(rules.aggregation == "seq-mean-token-sum-norm");
  return by_sequence / static_cast<double>(rules.norm_tokens);
}

}  // namespace antisd::inline algo
