// The divergences against their definitions, their gradients against finite differences in the
// logits.
#include "algo/token_divergence.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gmock/gmock.h>

namespace antisd::inline algo {
namespace {

using Values = std::vector<double>;

Values log_probabilities(const Values& logits) {
  double sum = 0;
  for (const double z : logits)
    sum += std::exp(z);
  Values logp;
  for (const double z : logits)
    logp.push_back(z - std::log(sum));
  return logp;
}

const Values kStudentLogits = {2, 1.5, .3, -.2, -1, -1.5}, kTeacherLogits = {.5, 2, -1, .8, -.4, 0};
constexpr std::size_t kTop = 3;  // the student's most likely tokens are the first three

SdpoLoss loss_of(const Values& student_logits, double alpha) {
  Values student = log_probabilities(student_logits), teacher = log_probabilities(kTeacherLogits);
  student.resize(kTop);
  teacher.resize(kTop);
  return sdpo_loss(student, teacher, alpha);
}

double defined_loss(double alpha) {
  const Values student = log_probabilities(kStudentLogits),
               teacher = log_probabilities(kTeacherLogits);
  Values p(kTop + 1, 0), q(kTop + 1, 0);
  for (std::size_t v = 0; v < student.size(); ++v) {
    p[std::min(v, kTop)] += std::exp(student[v]);
    q[std::min(v, kTop)] += std::exp(teacher[v]);
  }
  double loss = 0;
  for (std::size_t b = 0; b < p.size(); ++b) {
    const double m = (1 - alpha) * p[b] + alpha * q[b];
    loss += alpha * q[b] * std::log(q[b] / m) + (1 - alpha) * p[b] * std::log(p[b] / m);
  }
  return loss;
}

TEST(SdpoLoss, IsTheGeneralisedDivergence) {
  for (const double alpha : {.1, .5, .9})
    EXPECT_NEAR(loss_of(kStudentLogits, alpha).loss, defined_loss(alpha), 1e-12);
}

TEST(SdpoLoss, WithEveryTokenItIsTheJensenShannonDivergence) {
  const Values p = {.5, .3, .2}, q = {.2, .3, .5};
  Values student, teacher;
  for (std::size_t v = 0; v < 3; ++v) {
    student.push_back(std::log(p[v]));
    teacher.push_back(std::log(q[v]));
  }
  const SdpoLoss result = sdpo_loss(student, teacher, .5);  // the last bucket is empty
  EXPECT_NEAR(result.loss, .066414314, 1e-9);
  // its gradient with respect to the logits is pi_S(v) (mean phi - phi(u_v)): AntiSD ascends it
  const double sum = std::accumulate(result.gradient.begin(), result.gradient.end(), 0.0);
  const Values expected = {.072565157, -.009962147, -.062603010};
  for (std::size_t v = 0; v < 3; ++v)
    EXPECT_NEAR(result.gradient[v] - p[v] * sum, expected[v], 1e-9);
}

TEST(SdpoLoss, TheGradientReachesEveryLogit) {
  for (const double alpha : {.1, .5, .9}) {
    const SdpoLoss result = loss_of(kStudentLogits, alpha);
    const Values logp = log_probabilities(kStudentLogits);
    const double sum = std::accumulate(result.gradient.begin(), result.gradient.end(), 0.0);
    for (std::size_t w = 0; w < kStudentLogits.size(); ++w) {
      Values up = kStudentLogits, down = kStudentLogits;
      up[w] += 1e-5;
      down[w] -= 1e-5;
      const double expected = (loss_of(up, alpha).loss - loss_of(down, alpha).loss) / 2e-5;
      const double through_log_softmax =
          (w < kTop ? result.gradient[w] : 0) - std::exp(logp[w]) * sum;
      EXPECT_NEAR(through_log_softmax, expected, 1e-9) << "alpha " << alpha << ", logit " << w;
    }
  }
}

TEST(SdpoLoss, AgreementCostsNothing) {
  const Values same = {std::log(.6), std::log(.3)};
  const SdpoLoss result = sdpo_loss(same, same, .5);
  EXPECT_NEAR(result.loss, 0, 1e-15);
  EXPECT_THAT(result.gradient, ::testing::Each(::testing::DoubleNear(0, 1e-15)));
}

TEST(SdpoLoss, CertainTokensStayFinite) {
  const SdpoLoss result = sdpo_loss(Values{1e-8, -200}, Values{-200, 1e-8}, .5);
  EXPECT_TRUE(std::isfinite(result.loss));
  EXPECT_TRUE(std::isfinite(result.gradient[0]) && std::isfinite(result.gradient[1]));
}

// By hand: P = (1/2, 1/4, 1/4), Q = (1/4, 1/4, 1/2).
TEST(BucketLoss, HasTheValuesOfTheDefinition) {
  const Values p = {.5, .25, .25}, q = {.25, .25, .5};
  const auto loss = [&](TokenDivergence divergence, double alpha = .5) {
    return bucket_loss(p, q, {.divergence = divergence, .alpha = alpha});
  };
  const double ln2 = std::log(2.0);
  const BucketLoss forward = loss(TokenDivergence::kForwardKl);
  EXPECT_NEAR(forward.loss, .25 * -ln2 + .5 * ln2, 1e-15);
  const Values difference = {.25, 0, -.25};  // P - Q
  for (std::size_t b = 0; b < 3; ++b)
    EXPECT_NEAR(forward.by_logit[b], difference[b], 1e-15);
  const BucketLoss reverse = loss(TokenDivergence::kReverseKl);
  EXPECT_NEAR(reverse.loss, .5 * ln2 - .25 * ln2, 1e-15);
  const Values weighted = {.5 * (ln2 - .25 * ln2), .25 * -.25 * ln2, .25 * (-ln2 - .25 * ln2)};
  for (std::size_t b = 0; b < 3; ++b)
    EXPECT_NEAR(reverse.by_logit[b], weighted[b], 1e-15);
  // M = (3/8, 1/4, 3/8); both halves are 1/2 ln 4/3 + 1/4 ln 2/3.
  EXPECT_NEAR(loss(TokenDivergence::kJsd).loss, .5 * std::log(4. / 3) + .25 * std::log(2. / 3),
              1e-15);
}

// The rest is one bucket: its tokens share the gradient by their probability.
TEST(BucketLoss, TheGradientReachesEveryLogit) {
  const std::vector<std::size_t> top = {1, 3};  // the teacher's most likely
  const Values told = log_probabilities(kTeacherLogits);
  const auto merged = [&](const Values& logp) {
    Values buckets(top.size() + 1, 0);
    for (std::size_t v = 0; v < logp.size(); ++v) {
      const auto found = static_cast<std::size_t>(std::ranges::find(top, v) - top.begin());
      buckets[found] += std::exp(logp[v]);
    }
    return buckets;
  };
  for (const TokenDivergence divergence :
       {TokenDivergence::kForwardKl, TokenDivergence::kReverseKl, TokenDivergence::kJsd}) {
    const DivergenceRules rules{.divergence = divergence, .alpha = .3};
    const auto loss = [&](const Values& logits) {
      return bucket_loss(merged(log_probabilities(logits)), merged(told), rules);
    };
    const Values logp = log_probabilities(kStudentLogits), p = merged(logp);
    const BucketLoss found = loss(kStudentLogits);
    for (std::size_t w = 0; w < kStudentLogits.size(); ++w) {
      Values up = kStudentLogits, down = kStudentLogits;
      up[w] += 1e-5;
      down[w] -= 1e-5;
      const double expected = (loss(up).loss - loss(down).loss) / 2e-5;
      const auto b = static_cast<std::size_t>(std::ranges::find(top, w) - top.begin());
      EXPECT_NEAR(found.by_logit[b] * std::exp(logp[w]) / p[b], expected, 1e-9)
          << static_cast<int>(divergence) << ", logit " << w;
    }
  }
}

TEST(BucketLoss, CertainTokensStayFinite) {
  for (const TokenDivergence divergence :
       {TokenDivergence::kForwardKl, TokenDivergence::kReverseKl, TokenDivergence::kJsd}) {
    const BucketLoss loss =
        bucket_loss(Values{1, 0, 0}, Values{0, 1e-30, 1}, {.divergence = divergence});
    EXPECT_TRUE(std::isfinite(loss.loss));
    for (const double gradient : loss.by_logit)
      EXPECT_LT(std::abs(gradient), 100);
  }
}

}  // namespace
}  // namespace antisd::inline algo
