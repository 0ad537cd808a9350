// Divergences of distributions against tensor operations and autograd in double precision.
#include "trainer/distillation.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

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
                              .rules = {.top_k = k, .alpha = alpha},
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

// Heads of different widths and numbers of rows, of which 12 are tokens.
struct TwoModels {
  TwoModels() { at::manual_seed(5); }
  static constexpr std::int64_t kTokens = 7, kVocabulary = 12;
  double temperature = 0.8;
  at::Tensor student = at::randn({kTokens, 6}), teacher = at::randn({kTokens, 4}),
             head = at::randn({13, 6}), teacher_head = at::randn({15, 4});

  Distillation ours(const DivergenceRules& rules) const {
    return distil(student, head, teacher, teacher_head,
                  {.temperature = temperature,
                   .vocabulary = kVocabulary,
                   .rules = rules,
                   .mean_tokens = 20,
                   .block_tokens = 3});
  }

  static at::Tensor buckets(const at::Tensor& all, const at::Tensor& ids) {
    const at::Tensor top = all.gather(1, ids);
    return at::cat({top, 1 - top.sum(1, true)}, 1);
  }

  // The same by autograd; k = 0: the whole vocabulary.
  Distillation defined(const DivergenceRules& rules, std::int64_t k) const {
    at::Tensor x = student.to(at::kDouble).requires_grad_(true);
    at::Tensor w = head.to(at::kDouble).requires_grad_(true);
    const auto probabilities = [&](const at::Tensor& hidden, const at::Tensor& matrix) {
      return at::softmax(at::matmul(hidden, matrix.narrow(0, 0, kVocabulary).t()) / temperature,
                         -1);
    };
    at::Tensor p = probabilities(x, w),
               q = probabilities(teacher.to(at::kDouble), teacher_head.to(at::kDouble));
    if (k > 0) {
      const at::Tensor ids = std::get<1>(q.topk(k, -1));
      p = buckets(p, ids);
      q = buckets(q, ids);
    }
    const at::Tensor m = (1 - rules.alpha) * p + rules.alpha * q;
    const auto kl = [](const at::Tensor& a, const at::Tensor& b) {
      return (a * (a / b).log()).sum(1);
    };
    const at::Tensor loss = rules.divergence == TokenDivergence::kForwardKl ? kl(q, p)
                            : rules.divergence == TokenDivergence::kReverseKl
                                ? kl(p, q)
                                : rules.alpha * kl(q, m) + (1 - rules.alpha) * kl(p, m);
    (loss.sum() / 20).backward();
    Distillation found{.loss = {}, .hidden_gradient = x.grad(), .head_gradient = w.grad()};
    for (std::int64_t i = 0; i < kTokens; ++i)
      found.loss.push_back(loss[i].item<double>());
    return found;
  }
};

void expect_same(const Distillation& ours, const Distillation& defined) {
  for (std::size_t i = 0; i < defined.loss.size(); ++i)
    EXPECT_NEAR(ours.loss[i], defined.loss[i], 1e-5);
  // Relative to the gradient, and the rounding of fp32 probabilities: where these nearly cancel,
  // the gradient is small and the rounding is not.
  constexpr double kRounding = 4e-7;
  const auto expect_near = [](const at::Tensor& gradient, const at::Tensor& expected) {
    EXPECT_LE((gradient - expected).norm().item<double>(),
              1e-5 * expected.norm().item<double>() + kRounding);
  };
  expect_near(ours.hidden_gradient, defined.hidden_gradient);
  expect_near(ours.head_gradient, defined.head_gradient);
}

TEST(Distil, EveryDivergenceHasTheGradientOfItsDefinition) {
  const TwoModels models;
  for (const TokenDivergence divergence :
       {TokenDivergence::kForwardKl, TokenDivergence::kReverseKl, TokenDivergence::kJsd}) {
    for (const std::int64_t k : {0, 1, 4, 11}) {
      SCOPED_TRACE(fmt::format("divergence {}, k {}", static_cast<int>(divergence), k));
      const DivergenceRules rules{
          .divergence = divergence,
          .tokens = k > 0 ? DistilledTokens::kTeachersTop : DistilledTokens::kAll,
          .top_k = k,
          .alpha = 0.3};
      expect_same(models.ours(rules), models.defined(rules, k));
    }
  }
}

// 1 - the sum of the rounded probabilities would be 0 or noise here.
TEST(Distil, AStudentThatIsNearlyCertainHasTheRestsGradient) {
  TwoModels models;
  models.student.mul_(8);
  models.temperature = 1;
  for (const TokenDivergence divergence :
       {TokenDivergence::kForwardKl, TokenDivergence::kReverseKl, TokenDivergence::kJsd}) {
    SCOPED_TRACE(static_cast<int>(divergence));
    const DivergenceRules rules{
        .divergence = divergence, .tokens = DistilledTokens::kTeachersTop, .top_k = 4};
    expect_same(models.ours(rules), models.defined(rules, 4));
  }
}

}  // namespace
}  // namespace antisd::inline trainer
