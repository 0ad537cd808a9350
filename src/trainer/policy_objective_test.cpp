#include "trainer/policy_objective.h"

#include <cmath>

#include "trainer/update_testing.h"

namespace antisd::inline trainer {
namespace {

class PolicyObjectiveTest : public testing::UpdateTest {
 protected:
  at::Tensor gradients(const Shaping& shaping, const GradientPassOptions& options = {}) {
    for (std::size_t r = 0; r < batch_.size(); ++r)
      batch_[r].token_advantage.clear();
    PolicyObjective objective(shaping, batch_, /*off_policy=*/false);
    const at::Tensor all = UpdateTest::gradients(objective, options);
    sums_ = objective.sums;
    return all;
  }

  NamedSums sums_;  // of the last pass
};

// lambda = 0: the gradient equals GRPO's on the same batch.
TEST_F(PolicyObjectiveTest, WithLambdaZeroIsGrpoBitForBit) {
  const at::Tensor grpo = gradients(shaping("grpo", true));
  EXPECT_TRUE(at::equal(gradients(shaping("antisd", /*open=*/false)), grpo));
  EXPECT_FALSE(at::equal(gradients(shaping("antisd", /*open=*/true)), grpo));
}

// Teacher prompt = student prompt: |u| <= 1e-5, since s and t go through the same kernels.
TEST_F(PolicyObjectiveTest, TeacherWithTheStudentsPromptAgreesWithIt) {
  gradients(shaping("antisd", true, /*same_prompt=*/true));
  const Moments u = sums_.at("u");
  EXPECT_EQ(u.count, loss_tokens());
  EXPECT_LE(std::max(std::abs(u.min), std::abs(u.max)), 1e-5);
  gradients(shaping("antisd", true, /*same_prompt=*/false));
  EXPECT_GT(sums_.at("u").max, 1e-3);
}

// The mean over tokens does not depend on the micro-batches (1e-6).
TEST_F(PolicyObjectiveTest, MicroBatchesChangeTheGradientByRoundingAlone) {
  const Shaping antisd = shaping("antisd", true);
  const at::Tensor one = gradients(antisd);
  const double whole = sums_.mean("loss");
  EXPECT_EQ(micro_batches_, 1);
  EXPECT_EQ(tokens_, 2 * (18 + 3 + 5 + 7 + 9));  // a shared prompt counts once
  for (const std::int64_t tokens : {1, 40, 60}) {
    const at::Tensor cut = gradients(antisd, {.micro_batch_tokens = tokens});
    EXPECT_GT(micro_batches_, 1);
    EXPECT_LE((cut - one).norm().item<double>(), 1e-6 * one.norm().item<double>()) << tokens;
    EXPECT_NEAR(sums_.mean("loss"), whole, 1e-6);
  }
  const at::Tensor plain = gradients(antisd, {.kept_layers = 2});
  EXPECT_LE((plain - one).norm().item<double>(), 1e-6 * one.norm().item<double>());
}

// The gradient of -mean(A logp) written with plain tensor operations, one sequence at a time.
TEST_F(PolicyObjectiveTest, GradientIsThatOfTheWeightedLogProbabilities) {
  const Shaping antisd = shaping("antisd", true);
  const at::Tensor ours = gradients(antisd);
  const std::vector<TokenScores> t = teacher(false);
  const auto tokens = static_cast<double>(loss_tokens());
  at::Tensor loss = at::zeros({});
  for (std::size_t r = 0; r < batch_.size(); ++r) {
    const std::vector<at::Tensor> logp = plain_logp(r);
    const double group = *batch_[r].group_advantage;
    for (std::size_t i = 0; i < batch_[r].ids.size(); ++i) {
      const at::Tensor& s = logp[i];
      const double u = t[r].logp[i] - s.item<double>();
      const double advantage = group - 0.5 * (std::log1p(std::exp(u)) - std::log(2.0)) / 2;
      EXPECT_NEAR(batch_[r].token_advantage[i], advantage, 1e-5);
      loss = loss - advantage * s / tokens;
    }
  }
  loss.backward();
  const at::Tensor expected = current_gradients();
  EXPECT_LE((ours - expected).norm().item<double>(), 1e-5 * expected.norm().item<double>());
  EXPECT_NEAR(sums_.mean("loss"), -sums_.mean("advantage"), 1e-9);  // ratio 1
}

TEST_F(PolicyObjectiveTest, AFailedGradeTakesNoPart) {
  batch_[2].verdict.reward.reset();
  const at::Tensor without = gradients(shaping("antisd", true));
  EXPECT_TRUE(batch_[2].token_advantage.empty());
  EXPECT_EQ(sums_.at("loss").count, loss_tokens());
  batch_[2].ids.assign(5, 3);  // its content does not matter
  batch_[2].sampling_logp.assign(5, 0);
  EXPECT_TRUE(at::equal(gradients(shaping("antisd", true)), without));
}

}  // namespace
}  // namespace antisd::inline trainer
