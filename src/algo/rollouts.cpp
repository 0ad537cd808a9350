#include "algo/rollouts.h"

#include "core/check.h"

namespace antisd {

void check_rollouts(const RolloutBatch& batch) {
  for (const RolloutGroup& group : batch.groups) {
    ANTISD_CHECK_EQ(group.rollouts.size(), batch.group_size());
    for (const Rollout& rollout : group.rollouts)
      ANTISD_CHECK_EQ(rollout.sampling_logp.size(), rollout.response_ids.size());
  }
}

std::int64_t count_loss_tokens(const RolloutBatch& batch) {
  std::int64_t tokens = 0;
  for (std::size_t r = 0; r < batch.size(); ++r) {
    if (!batch[r].grade.failed()) tokens += static_cast<std::int64_t>(batch[r].response_ids.size());
  }
  return tokens;
}

}  // namespace antisd
