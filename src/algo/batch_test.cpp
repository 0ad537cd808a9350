#include <gmock/gmock.h>

#include "algo/contexts.h"
#include "algo/rollouts.h"
#include "core/check.h"

namespace antisd {
namespace {

Rollout rollout_of(std::size_t tokens, std::optional<double> reward) {
  return {.response_ids = std::vector<TokenId>(tokens, 1),
          .sampling_logp = std::vector<float>(tokens, -1.0F),
          .grade = {.reward = reward}};
}

TEST(RolloutBatch, NumbersRolloutsPromptByPrompt) {
  RolloutBatch batch;
  EXPECT_EQ(batch.size(), 0u);
  batch.groups = {{{rollout_of(1, 1), rollout_of(2, 0)}}, {{rollout_of(3, {}), rollout_of(4, 1)}}};
  ASSERT_EQ(batch.size(), 4u);
  for (std::size_t r = 0; r < batch.size(); ++r)
    EXPECT_EQ(batch[r].response_ids.size(), r + 1);
  EXPECT_EQ(count_loss_tokens(batch), 1 + 2 + 4);  // a failed grade leaves the loss
  check_rollouts(batch);

  batch[3].sampling_logp.pop_back();
  EXPECT_THROW(check_rollouts(batch), CheckFailure);
  batch.groups[1].rollouts.pop_back();
  EXPECT_THROW(check_rollouts(batch), CheckFailure);
}

TEST(RolloutGrade, AFailureIsNeitherRightNorWrong) {
  EXPECT_TRUE(RolloutGrade{.reward = 1.0}.correct());
  EXPECT_FALSE(RolloutGrade{.reward = 0.99}.correct());
  EXPECT_FALSE(RolloutGrade{}.correct());
  EXPECT_TRUE(RolloutGrade{}.failed());
  EXPECT_FALSE(RolloutGrade{.reward = 0.0}.failed());
}

TEST(ContextBatch, SharesAreOfTheRolloutsWithATeacherPrompt) {
  ContextBatch batch;
  EXPECT_EQ(batch.fraction(ContextSource::kPeer), 0);
  for (const ContextSource source :
       {ContextSource::kPeer, ContextSource::kPeer, ContextSource::kAnswer, ContextSource::kNone,
        ContextSource::kDataset})
    batch.contexts.push_back({.source = source, .prompt_ids = {}});
  EXPECT_EQ(batch.fraction(ContextSource::kPeer), 0.5);
  EXPECT_EQ(batch.fraction(ContextSource::kAnswer), 0.25);
  EXPECT_EQ(batch.fraction(ContextSource::kFeedback), 0);
  EXPECT_STREQ(context_source_name(ContextSource::kDataset), "dataset");
}

}  // namespace
}  // namespace antisd
