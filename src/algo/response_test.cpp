#include "algo/response.h"

#include <gmock/gmock.h>

#include "core/check.h"

namespace antisd::inline algo {
namespace {

Response response_of(std::size_t tokens, std::optional<double> reward) {
  return {.ids = std::vector<TokenId>(tokens, 1),
          .sampling_logp = std::vector<float>(tokens, -1.0F),
          .verdict = {.reward = reward}};
}

TEST(ResponseBatch, NumbersResponsesPromptByPrompt) {
  ResponseBatch batch;
  EXPECT_EQ(batch.size(), 0u);
  batch.groups = {{{response_of(1, 1), response_of(2, 0)}},
                  {{response_of(3, {}), response_of(4, 1)}}};
  ASSERT_EQ(batch.size(), 4u);
  for (std::size_t r = 0; r < batch.size(); ++r)
    EXPECT_EQ(batch[r].ids.size(), r + 1);
  batch[2].teacher.logp = {-1, -2, -3};
  EXPECT_EQ(scores_of(batch, &Response::teacher)[2].logp.size(), 3u);
  EXPECT_TRUE(scores_of(batch, &Response::teacher)[1].logp.empty());
  check_responses(batch);

  batch[3].sampling_logp.pop_back();
  EXPECT_THROW(check_responses(batch), CheckFailure);
  batch.groups[1].responses.pop_back();
  EXPECT_THROW(check_responses(batch), CheckFailure);
}

TEST(Verdict, AFailureIsNeitherRightNorWrong) {
  EXPECT_TRUE(Verdict{.reward = 1.0}.correct());
  EXPECT_FALSE(Verdict{.reward = 0.99}.correct());
  EXPECT_FALSE(Verdict{}.correct());
  EXPECT_TRUE(Verdict{}.failed());
  EXPECT_FALSE(Verdict{.reward = 0.0}.failed());
}

TEST(Verdict, ATruncatedResponseIsWrong) {
  EXPECT_EQ(truncated_verdict().reward, 0.0);
  EXPECT_EQ(truncated_verdict().reason, "truncated");
  EXPECT_EQ(truncated_verdict(-1).reward, -1.0);
  EXPECT_FALSE(truncated_verdict(1).correct()) << "whatever it is worth";
}

TEST(Verdict, RewardsAreFinite) {
  EXPECT_TRUE((Verdict{.reward = -1.5}.usable()));
  EXPECT_FALSE((Verdict{.reward = std::nan("")}.usable()));
  EXPECT_FALSE((Verdict{.reward = HUGE_VAL}.usable()));
  EXPECT_TRUE(Verdict{}.usable());
}

TEST(Verdict, ASumDoesNotDecideWhatIsCorrect) {
  const Verdict verdict{
      .reward = 0.7, .reason = "", .right = true, .parts = {{kGraderPart, 1.0}, {"brief", -0.3}}};
  EXPECT_TRUE(verdict.correct());
  EXPECT_EQ(verdict.own_reward(), 1.0);
  EXPECT_EQ((Verdict{.reward = 0.7}.own_reward()), 0.7);
  EXPECT_TRUE((Verdict{.reward = 1.5}.correct())) << "more than 1 is right too";
}

}  // namespace
}  // namespace antisd::inline algo
