// Group advantages: A_i = (R_i - mean) / (std + 1e-6) over a group's graded rollouts.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "algo/rollouts.h"

namespace antisd {

// By rollout number. Nothing: the grade failed, and the rollout takes no part in the loss.
using Advantages = std::vector<std::optional<double>>;

// Of one group. std has Bessel's correction. Equal rewards, or fewer than two graded rollouts, give
// exactly 0. InputError for a group of one, whose advantage says nothing.
Advantages group_advantages(std::span<const std::optional<double>> rewards);

Advantages group_advantages(const RolloutBatch& batch);

}  // namespace antisd
