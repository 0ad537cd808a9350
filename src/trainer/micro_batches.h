// How the responses of an update are cut into passes that fit the memory. In the order of the
// prompts, whatever finished first, so that timing changes nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algo/prompts.h"
#include "algo/rollouts.h"

namespace antisd {

using RolloutNumbers = std::vector<std::size_t>;

// The rollouts whose grade did not fail, in `parts` runs of whole groups that differ by one group
// at most. A part may be empty.
std::vector<RolloutNumbers> cut_mini_batches(const RolloutBatch& batch, std::int64_t parts);

// Runs of at most `limit` tokens; a longer sequence goes alone. A prompt that several responses of
// a run share counts once, since it is computed once.
std::vector<RolloutNumbers> cut_micro_batches(const PromptBatch& prompts, const RolloutBatch& batch,
                                              std::span<const std::size_t> rollouts,
                                              std::int64_t limit);

}  // namespace antisd
