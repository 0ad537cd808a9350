// Statistics of a step's rewards, for the record.
#pragma once

#include <cstdint>

#include "algo/response.h"

namespace antisd::inline algo {

// Over graded rollouts; NaN (not 0) if there are none.
struct RewardSummary {
  double mean, max, min;
  double non_truncated;            // mean over the responses that were not truncated
  double all_right_fraction;       // groups whose graded rollouts all have reward 1
  double all_wrong_fraction;       // or all 0
  std::int64_t grader_failed = 0;  // rollouts
};

RewardSummary summarise_rewards(const ResponseBatch& batch);

}  // namespace antisd::inline algo
