#include "trainer/distil_objective.h"

#include "trainer/update_testing.h"

namespace antisd::inline trainer {
namespace {

using DistilObjectiveTest = testing::UpdateTest;

// The penalty adds the gradient of coef (e^d - d - 1), d = reference - s, written with plain tensor
// operations.
TEST_F(DistilObjectiveTest, DistillingTakesTheReferencesPenaltyToo) {
  constexpr double kCoefficient = 0.7;
  for (std::size_t r = 0; r < batch_.size(); ++r) {
    std::vector<TokenId>& shown = batch_[r].context.prompt_ids;
    shown = prompts_.prompts[r / 4].ids;
    shown.insert(shown.begin(), {4, 9, 13});
    for (std::size_t i = 0; i < batch_[r].ids.size(); ++i)
      batch_[r].reference.logp.push_back(-2.5f - 0.1f * static_cast<float>((r + 3 * i) % 7));
  }
  const auto tokens = static_cast<double>(loss_tokens());
  const PassBatch batch{.sequences = graded_sequences(),
                        .shown = teacher_sequences(batch_, cut_mini_batches(batch_, 1)[0])};
  NamedSums sums;
  const auto gradient = [&](double coefficient) {
    MethodConfig config;
    config.name = "sdpo";
    config.sdpo.top_k = 5;
    LossConfig loss;
    loss.kl_coef = coefficient;
    const Method method = resolve_method(config, loss);
    DistilObjective objective(method, model_, model_.head().weight, /*temperature=*/1, batch_);
    const at::Tensor found =
        gradients(objective, {.micro_batch_tokens = 60, .teacher = &model_}, &batch);
    sums = objective.sums;
    return found;
  };
  const at::Tensor plain = gradient(0);
  const double plain_loss = sums.mean("loss");
  const at::Tensor added = gradient(kCoefficient) - plain;
  const double added_loss = sums.mean("loss") - plain_loss;

  at::Tensor penalty = at::zeros({});
  for (std::size_t r = 0; r < batch_.size(); ++r) {
    const std::vector<at::Tensor> logp = plain_logp(r);
    for (std::size_t i = 0; i < batch_[r].ids.size(); ++i) {
      const at::Tensor d = batch_[r].reference.logp[i] - logp[i];
      penalty = penalty + kCoefficient * (d.exp() - d - 1) / tokens;
    }
  }
  EXPECT_NEAR(added_loss, penalty.item<double>(), 1e-5);
  EXPECT_NEAR(kCoefficient * sums.mean("kl_loss"), penalty.item<double>(), 1e-5);
  penalty.backward();
  const at::Tensor expected = current_gradients();
  optimizer_.drop_gradients();
  EXPECT_LE((added - expected).norm().item<double>(), 1e-5 * expected.norm().item<double>());
  EXPECT_GT(expected.norm().item<double>(), 1e-3);
}

}  // namespace
}  // namespace antisd::inline trainer
