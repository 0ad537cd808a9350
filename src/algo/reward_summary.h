// What the rewards of a step say, for the record.
#pragma once

#include <cstdint>

#include "algo/response.h"

namespace antisd::inline algo {

// Over graded rollouts; NaN where there are none, which is not 0.
struct RewardSummary {
  double mean, max, min;
  double non_truncated;            // mean over the responses that ended by themselves
  double all_right_fraction;       // groups whose graded rollouts all have reward 1
  double all_wrong_fraction;       // or all 0
  std::int64_t grader_failed = 0;  // rollouts
};

RewardSummary summarise_rewards(const ResponseBatch& batch);

}  // namespace antisd::inline algo
