#include "algo/reward_summary.h"

#include <limits>

#include "algo/moments.h"

namespace antisd::inline algo {

RewardSummary summarise_rewards(const ResponseBatch& batch) {
  Moments graded, finished, all_right, all_wrong;
  std::int64_t failed = 0;
  for (const ResponseGroup& group : batch.groups) {
    Moments of_group, own, correct;
    for (const Response& response : group.responses) {
      if (response.verdict.failed()) {
        ++failed;
        continue;
      }
      of_group.add(*response.verdict.reward);
      own.add(*response.verdict.own_reward());
      correct.add(response.verdict.correct() ? 1 : 0);
      if (!response.truncated()) finished.add(*response.verdict.reward);
    }
    graded.add(of_group);
    if (of_group.count == 0) continue;
    all_right.add(correct.min == 1 ? 1 : 0);
    all_wrong.add(own.max <= 0 ? 1 : 0);
  }
  const double none = std::numeric_limits<double>::quiet_NaN();
  return {.mean = graded.mean(),
          .max = graded.count > 0 ? graded.max : none,
          .min = graded.count > 0 ? graded.min : none,
          .non_truncated = finished.mean(),
          .all_right_fraction = all_right.mean(),
          .all_wrong_fraction = all_wrong.mean(),
          .grader_failed = failed};
}

}  // namespace antisd::inline algo
