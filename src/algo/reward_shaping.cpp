#include "algo/reward_shaping.h"

#include <algorithm>

#include "algo/clipped_loss.h"
#include "core/check.h"

namespace antisd::inline algo {
namespace {

double divergence(const Response& response, const std::string& estimator) {
  ANTISD_CHECK_EQ(response.before.logp.size(), response.reference.logp.size());
  double sum = 0;
  for (std::size_t i = 0; i < response.before.logp.size(); ++i)
    sum += kl_penalty(response.before.logp[i], response.reference.logp[i], estimator).loss;
  return sum;
}

}  // namespace

bool shapes_rewards(const RewardConfig& rules) {
  return rules.kl_coef > 0 || rules.overlong_tokens > 0;
}

double overlong_penalty(const RewardConfig& rules, std::int64_t tokens, std::int64_t limit) {
  if (rules.overlong_tokens == 0) return 0;
  const std::int64_t over = std::max<std::int64_t>(0, tokens - (limit - rules.overlong_tokens));
  return rules.overlong_penalty * static_cast<double>(over) /
         static_cast<double>(rules.overlong_tokens);
}

void shape_rewards(const RunConfig& config, std::span<const std::int64_t> prompt_tokens,
                   ResponseBatch& batch) {
  const RewardConfig& rules = config.reward;
  if (!shapes_rewards(rules)) return;
  for (std::size_t r = 0; r < batch.size(); ++r) {
    Response& response = batch[r];
    if (!response.verdict.reward) continue;
    const std::int64_t tokens = prompt_tokens[r / batch.group_size()] + std::ssize(response.ids);
    double penalty = overlong_penalty(rules, tokens, config.rollout.max_sequence_tokens);
    if (rules.kl_coef > 0)
      penalty += rules.kl_coef * divergence(response, config.loss.kl_estimator);
    response.shaped_reward = *response.verdict.reward - penalty;
  }
}

}  // namespace antisd::inline algo
