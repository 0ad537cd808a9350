#include "trainer/updater.h"

#include <cmath>

#include "trainer/update_testing.h"

namespace antisd::inline trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using UpdaterTest = testing::UpdateTest;

TEST_F(UpdaterTest, SeveralMiniBatchesClipAgainstTheScoresFromBefore) {
  const Shaping grpo = shaping("grpo", true);
  std::vector<ScoreRequest> requests;
  for (std::size_t r = 0; r < batch_.size(); ++r)
    requests.push_back({prompts_.prompts[r / 4].ids, batch_[r].ids});
  const std::vector<TokenScores> old = score(model_, requests);
  for (std::size_t r = 0; r < batch_.size(); ++r)
    batch_[r].before = old[r];
  const Updater updater({.minibatches = 2, .epochs = 2});
  EXPECT_TRUE(updater.needs_old_scores());
  const UpdateResult result = updater.step(model_, optimizer_, 0.05,
                                           {.prompts = prompts_, .batch = batch_, .shaping = grpo});
  EXPECT_EQ(result.updates, 4);
  EXPECT_EQ(optimizer_.steps(), 4);
  EXPECT_GT(result.sums.mean("clipped"), 0);
  EXPECT_NE(result.sums.mean("log_ratio"), 0);
  EXPECT_EQ(result.sums.at("loss").count, 2 * loss_tokens());
  EXPECT_EQ(batch_[7].student.logp, old[7].logp);  // as used in the advantage

  // Its first mini-batch is an update of only the first group, with the mean over its own tokens.
  const auto mini = cut_mini_batches(batch_, 2);
  EXPECT_THAT(mini[0], ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(mini[1], ElementsAre(4, 5, 6, 7));
}

TEST_F(UpdaterTest, ALossThatIsNoNumberNamesTheResponseAndTouchesNothing) {
  const Shaping antisd = shaping("antisd", true);
  batch_[5].teacher.logp[1] = NAN;
  const std::string before = testing::weight_bytes(model_);
  const Updater updater({.micro_batch_tokens = 40});
  try {
    updater.step(model_, optimizer_, 0.1,
                 {.prompts = prompts_, .batch = batch_, .shaping = antisd});
    FAIL() << "no error";
  } catch (const NotFiniteError& error) {
    EXPECT_EQ(error.number, 5u);
    EXPECT_THAT(error.message(), HasSubstr("the loss is not finite"));
    EXPECT_EQ(error.student.logp.size(), batch_[5].ids.size());
  }
  EXPECT_EQ(testing::weight_bytes(model_), before);
  for (const Parameter& parameter : model_.parameters())
    EXPECT_FALSE(parameter.value.grad().defined());
}

// The loss is finite, its gradient is not: a huge advantage overflows in fp32.
TEST_F(UpdaterTest, AGradientThatIsNoNumberNamesTheResponseAndTouchesNothing) {
  const Shaping grpo = shaping("grpo", true);
  batch_[6].group_advantage = 1e42;
  const std::string before = testing::weight_bytes(model_);
  const Updater updater({});
  try {
    updater.step(model_, optimizer_, 0.1, {.prompts = prompts_, .batch = batch_, .shaping = grpo});
    FAIL() << "no error";
  } catch (const NotFiniteError& error) {
    EXPECT_EQ(error.number, 6u);
    EXPECT_THAT(error.message(), HasSubstr("gradient of"));
  }
  EXPECT_EQ(testing::weight_bytes(model_), before);
  EXPECT_EQ(optimizer_.steps(), 0);
}

TEST_F(UpdaterTest, NeighboursOfAGroupShareTheirPrompt) {
  batch_[1].verdict.reward.reset();
  const std::vector<TargetSequence> sequences = graded_sequences();
  ASSERT_EQ(sequences.size(), 7u);
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const std::size_t r = sequences[s].number;
    EXPECT_EQ(r, s < 1 ? s : s + 1);
    EXPECT_EQ(sequences[s].shared, r == 0 || r == 4 ? 0 : 18) << r;
    EXPECT_EQ(sequences[s].targets.size(), batch_[r].ids.size());
    EXPECT_EQ(sequences[s].targets.front(), 18);
    EXPECT_EQ(sequences[s].ids.back(), batch_[r].ids.back());
  }
}

}  // namespace
}  // namespace antisd::inline trainer
