#include "trainer/distillation.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace antisd {
namespace {

// method.md's formula with tensor operations and their gradients, in double precision.
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

}  // namespace
}  // namespace antisd
