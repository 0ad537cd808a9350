#include "algo/reward_shaping.h"

#include <cmath>

#include <gmock/gmock.h>

namespace antisd::inline algo {
namespace {

// DAPO's rule with a buffer of 20 before 100 tokens: nothing up to 80, all of it at 100.
TEST(RewardShaping, TheRewardFallsOverTheLastTokens) {
  const RewardConfig rules{.overlong_tokens = 20, .overlong_penalty = .5};
  EXPECT_EQ(overlong_penalty(rules, 10, 100), 0);
  EXPECT_EQ(overlong_penalty(rules, 80, 100), 0);
  EXPECT_DOUBLE_EQ(overlong_penalty(rules, 81, 100), .5 / 20);
  EXPECT_DOUBLE_EQ(overlong_penalty(rules, 90, 100), .25);
  EXPECT_DOUBLE_EQ(overlong_penalty(rules, 100, 100), .5);
  EXPECT_EQ(overlong_penalty({}, 100, 100), 0);
}

ResponseBatch two_responses() {
  ResponseBatch batch;
  ResponseGroup& group = batch.groups.emplace_back();
  for (const int tokens : {3, 8}) {
    Response& response = group.responses.emplace_back();
    response.ids.assign(static_cast<std::size_t>(tokens), 1);
    response.before.logp.assign(response.ids.size(), -1.F);
    response.reference.logp.assign(response.ids.size(), -1.5F);
    response.verdict.reward = 1;
  }
  return batch;
}

TEST(RewardShaping, CountsPromptAndResponse) {
  RunConfig config;
  config.rollout.max_sequence_tokens = 12;
  config.reward.overlong_tokens = 4;
  ResponseBatch batch = two_responses();
  const std::vector<std::int64_t> prompt = {3};
  shape_rewards(config, prompt, batch);
  EXPECT_EQ(*batch[0].shaped_reward, 1);           // 6 tokens
  EXPECT_DOUBLE_EQ(*batch[1].shaped_reward, .25);  // 11 tokens, 3 of 4 over
  EXPECT_EQ(*batch[1].verdict.reward, 1);          // the grader's stays
}

TEST(RewardShaping, TheDivergenceIsSummedOverTheTokens) {
  RunConfig config;
  config.reward.kl_coef = .1;
  for (const auto& [estimator, each] :
       {std::pair("k1", .5), std::pair("k2", .125), std::pair("k3", std::exp(-.5) + .5 - 1)}) {
    config.loss.kl_estimator = estimator;
    ResponseBatch batch = two_responses();
    batch[0].verdict.reward.reset();
    const std::vector<std::int64_t> prompt = {3};
    shape_rewards(config, prompt, batch);
    EXPECT_FALSE(batch[0].shaped_reward);  // its grade failed
    EXPECT_NEAR(*batch[1].shaped_reward, 1 - .1 * 8 * each, 1e-12) << estimator;
  }
}

TEST(RewardShaping, WithoutPenaltiesNothingIsSet) {
  ResponseBatch batch = two_responses();
  const std::vector<std::int64_t> prompt = {3};
  shape_rewards(RunConfig(), prompt, batch);
  EXPECT_FALSE(batch[0].shaped_reward);
}

}  // namespace
}  // namespace antisd::inline algo
