// Statistics of a step's rewards, for the record.
#pragma once

#include <cstdint>

#include "algo/response.h"

namespace antisd::inline algo {

// Over graded rollouts; NaN (not 0) if there are none.
struct RewardSummary {
  double mean, max, min;
  double non_truncated;            // mean over the responses that were not truncated
  double all_right_fraction;       // groups whose graded rollouts are all correct
  double all_wrong_fraction;       // or all have nothing from the grader: 0 or less
  std::int64_t grader_failed = 0;  // rollouts
};

RewardSummary summarise_rewards(const ResponseBatch& batch);

}  // namespace antisd::inline algo
