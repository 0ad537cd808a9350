#include "trainer/sdpo_objective.h"

#include "trainer/update_testing.h"

namespace antisd::inline trainer {
namespace {

// The divergence over the k most likely tokens and a rest bucket, with tensor operations and
// autograd, in double precision.
TEST(Distil, IsTheDivergenceOnTheLikeliestTokensAndARest) {
  at::manual_seed(3);
  const std::int64_t n = 7, width = 6, rows = 13, vocabulary = 12, k = 4;
  const double alpha = 0.3, temperature = 0.8;
  const at::Tensor student = at::randn({n, width}), teacher = at::randn({n, width}),
                   head = at::randn({rows, width}), teacher_head = at::randn({rows, width});
  DistillationOptions options{.temperature = temperature,
                              .vocabulary = vocabulary,
                              .top_k = k,
                              .alpha = alpha,
                              .mean_tokens = 20,
                              .block_tokens = 3};
  const Distillation ours = distil(student, head, teacher, teacher_head, options);
  options.gradient_scale = 16;
  const Distillation scaled = distil(student, head, teacher, teacher_head, options);
  EXPECT_EQ(scaled.loss, ours.loss);
  EXPECT_TRUE(scaled.hidden_gradient.equal(ours.hidden_gradient * 16));
  EXPECT_TRUE(scaled.head_gradient.equal(ours.head_gradient * 16));

  at::Tensor x = student.to(at::kDouble).requires_grad_(true);
  at::Tensor w = head.to(at::kDouble).requires_grad_(true);
  const at::Tensor tokens = w.narrow(0, 0, vocabulary);
  const auto probabilities = [&](const at::Tensor& hidden, const at::Tensor& matrix) {
    return at::softmax(at::matmul(hidden, matrix.t()) / temperature, -1);
  };
  const at::Tensor p_all = probabilities(x, tokens);
  const at::Tensor q_all =
      probabilities(teacher.to(at::kDouble), teacher_head.to(at::kDouble).narrow(0, 0, vocabulary));
  const at::Tensor ids = std::get<1>(p_all.topk(k, -1));
  const auto buckets = [&](const at::Tensor& all) {
    const at::Tensor top = all.gather(1, ids);
    return at::cat({top, 1 - top.sum(1, true)}, 1);
  };
  const at::Tensor p = buckets(p_all), q = buckets(q_all), m = (1 - alpha) * p + alpha * q;
  const at::Tensor loss =
      alpha * (q * (q / m).log()).sum(1) + (1 - alpha) * (p * (p / m).log()).sum(1);
  (loss.sum() / 20).backward();
  for (std::int64_t i = 0; i < n; ++i)
    EXPECT_NEAR(ours.loss[static_cast<std::size_t>(i)], loss[i].item<double>(), 1e-6);
  EXPECT_LE((ours.hidden_gradient - x.grad()).norm().item<double>(),
            1e-5 * x.grad().norm().item<double>());
  EXPECT_LE((ours.head_gradient - w.grad()).norm().item<double>(),
            1e-5 * w.grad().norm().item<double>());
}

using SdpoObjectiveTest = testing::UpdateTest;

// The penalty adds the gradient of coef (e^d - d - 1), d = reference - s, written with plain tensor
// operations.
TEST_F(SdpoObjectiveTest, DistillingTakesTheReferencesPenaltyToo) {
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
    SdpoObjective objective(method, model_, model_, /*temperature=*/1, batch_);
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
