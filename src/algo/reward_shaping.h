// Penalties that are subtracted from the grader's rewards before the advantage: for length, as in
// DAPO, and for the KL divergence from the reference.
#pragma once

#include <span>

#include "algo/response.h"
#include "config/run_config.h"

namespace antisd::inline algo {

// Whether there is any.
bool shapes_rewards(const RewardConfig& rules);

// 0 up to `limit` - overlong_tokens tokens of prompt and response, then linear up to
// overlong_penalty at `limit`.
double overlong_penalty(const RewardConfig& rules, std::int64_t tokens, std::int64_t limit);

// Sets Response::shaped_reward of every graded response; does nothing without penalties. With
// reward.kl_coef it reads Response::before and Response::reference. `prompt_tokens`: by group.
void shape_rewards(const RunConfig& config, std::span<const std::int64_t> prompt_tokens,
                   ResponseBatch& batch);

}  // namespace antisd::inline algo
