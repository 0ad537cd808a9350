// Group advantages: A_i = (R_i - mean) / (std + 1e-6) over a group's graded rollouts.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "algo/response.h"

namespace antisd::inline algo {

// By sample. Nothing: the grade failed, and the response is not in the loss.
using Advantages = std::vector<std::optional<double>>;

// One group. std has Bessel's correction. Equal rewards, or fewer than two graded rollouts, give
// exactly 0. InputError for a group of one, whose advantage would be meaningless.
Advantages group_advantages(std::span<const std::optional<double>> rewards);

// Sets Response::group_advantage of the whole batch, group by group.
void set_advantages(ResponseBatch& batch);

}  // namespace antisd::inline algo
