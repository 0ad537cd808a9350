// Group advantages: A_i = (R_i - baseline) / scale over a group's graded rollouts; GRPO's are
// (R_i - mean) / (std + 1e-6).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "algo/response.h"
#include "config/run_config.h"

namespace antisd::inline algo {

// By sample. Nothing: the grade failed, and the response is not in the loss.
using Advantages = std::vector<std::optional<double>>;

// One group. The standard deviation, of the group or, for scale = "batch", `batch_deviation`, has
// Bessel's correction; 1e-6 is added to it. Equal rewards, or fewer than two graded rollouts, give
// exactly 0. InputError for a group of one, whose advantage would be meaningless.
Advantages group_advantages(std::span<const std::optional<double>> rewards,
                            const AdvantageConfig& rules = {}, double batch_deviation = 0);

// Sets Response::group_advantage of the whole batch, group by group, from the shaped rewards where
// there are any (algo/reward_shaping.h), else from the grader's.
void set_advantages(ResponseBatch& batch, const AdvantageConfig& rules = {});

// Whether the rewards of a group differ: without that, A = 0 for all of it.
bool has_signal(const ResponseGroup& group);

}  // namespace antisd::inline algo
