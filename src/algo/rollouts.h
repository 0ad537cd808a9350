// The responses of one step and what graders say of them: y and R.
//
//   for (std::size_t r = 0; r < batch.size(); ++r) use(batch[r]);   // prompt by prompt
//   batch.groups[p].rollouts[i] is batch[p * G + i]
//
// Everything that is known of a rollout (advantage, context, scores) is held by its number r.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/tokenizer/vocabulary.h"

namespace antisd {

enum class FinishReason { kStop, kLength };

struct RolloutGrade {
  std::optional<double> reward;  // 0 to 1; nothing where the grader failed, which is not a zero
  std::string reason;
  int passed = 0, total = 0;  // tests, where there are any

  bool correct() const { return reward == 1.0; }
  bool failed() const { return !reward.has_value(); }
};

struct Rollout {
  std::vector<TokenId> response_ids;  // as sampled; never made anew from the text
  std::vector<float> sampling_logp;   // as the sampler saw it, one a token
  FinishReason finish_reason = FinishReason::kStop;
  std::string text;  // without special tokens
  RolloutGrade grade;

  bool truncated() const { return finish_reason == FinishReason::kLength; }
};

struct RolloutGroup {
  std::vector<Rollout> rollouts;
};

struct RolloutBatch {
  std::vector<RolloutGroup> groups;  // by prompt, all of the same size

  std::size_t group_size() const { return groups.empty() ? 0 : groups.front().rollouts.size(); }
  std::size_t size() const { return groups.size() * group_size(); }
  const Rollout& operator[](std::size_t r) const {
    return groups[r / group_size()].rollouts[r % group_size()];
  }
  Rollout& operator[](std::size_t r) { return groups[r / group_size()].rollouts[r % group_size()]; }
};

// Fails where the groups differ in size or a rollout has not one log-probability for each token.
void check_rollouts(const RolloutBatch& batch);

// Response tokens of the rollouts whose grade did not fail: what a loss is the mean over.
std::int64_t count_loss_tokens(const RolloutBatch& batch);

}  // namespace antisd
