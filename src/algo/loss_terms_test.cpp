#include "algo/loss_terms.h"

#include <cmath>

#include <gmock/gmock.h>

#include "algo/clipped_loss.h"

namespace antisd::inline algo {
namespace {

using ::testing::Each;

TEST(LossTerms, AddTheirWeightedLossAndGradient) {
  LossConfig rules;
  EXPECT_FALSE(needs_reference(rules));
  EXPECT_FALSE(has_loss_terms(rules));
  TokenLoss loss{2, -3};
  AddedSums sums;
  add_loss_terms(rules, {-1, -1.5}, loss, sums);
  EXPECT_EQ(loss.loss, 2);
  EXPECT_EQ(loss.gradient, -3);
  EXPECT_THAT(sums, Each(0));

  rules.kl_coef = .25;
  EXPECT_TRUE(needs_reference(rules));
  EXPECT_TRUE(has_loss_terms(rules));
  add_loss_terms(rules, {-1, -1.5}, loss, sums);
  add_loss_terms(rules, {-1, -1}, loss, sums);  // where both agree the term is 0
  EXPECT_NEAR(loss.loss, 2 + .25 * (std::exp(-.5) + .5 - 1), 1e-12);
  EXPECT_NEAR(loss.gradient, -3 + .25 * (1 - std::exp(-.5)), 1e-12);
  EXPECT_NEAR(sums[0], std::exp(-.5) + .5 - 1, 1e-12);
}

TEST(LossTerms, TheDerivativeOfEachKlIsThatOfItsLoss) {
  const LossTerm& term = loss_terms()[0];
  ASSERT_EQ(term.name, "kl_loss");
  for (const char* estimator : {"k1", "k2", "k3"}) {
    LossConfig rules;
    rules.kl_estimator = estimator;
    for (const double logp : {-4.0, -1.1, -1.0, -.2}) {
      const auto at = [&](double s) { return term.at({s, -1}, rules).loss; };
      EXPECT_NEAR(term.at({logp, -1}, rules).gradient, (at(logp + 1e-6) - at(logp - 1e-6)) / 2e-6,
                  1e-4)
          << estimator << " at " << logp;
    }
    EXPECT_EQ(term.at({-1, -1}, rules).loss, 0);
  }
}

// Values worked by hand for d = log p - log p_reference = 0.5.
TEST(LossTerms, TheEstimatorsOfTheKlAreTheUsualOnes) {
  const auto kl = [](const char* estimator) {
    LossConfig rules;
    rules.kl_estimator = estimator;
    return loss_terms()[0].at({.logp = -1, .reference = -1.5}, rules).loss;
  };
  EXPECT_NEAR(kl("k1"), .5, 1e-12);
  EXPECT_NEAR(kl("k2"), .125, 1e-12);
  EXPECT_NEAR(kl("k3"), std::exp(-.5) + .5 - 1, 1e-12);
}

// The mean over all tokens of what one sampled token gives is the derivative of -H by the logits:
// p_v (log p_v + H), which finite differences of H confirm.
TEST(LossTerms, TheEntropyBonusHasTheGradientOfTheEntropyOnAverage) {
  const std::vector<double> logits = {.3, -1.2, 2, 0};
  const auto log_softmax = [](const std::vector<double>& z) {
    double sum = 0;
    for (const double value : z)
      sum += std::exp(value);
    std::vector<double> logp;
    for (const double value : z)
      logp.push_back(value - std::log(sum));
    return logp;
  };
  const auto entropy = [&](const std::vector<double>& z) {
    double sum = 0;
    for (const double logp : log_softmax(z))
      sum -= std::exp(logp) * logp;
    return sum;
  };
  const LossTerm& term = loss_terms()[1];
  ASSERT_EQ(term.name, "entropy_bonus");
  const std::vector<double> logp = log_softmax(logits);
  for (std::size_t v = 0; v < logits.size(); ++v) {
    double mean = 0;  // over the sampled token y of gradient(y) x d log p(y) / d z_v
    for (std::size_t y = 0; y < logits.size(); ++y) {
      const double by_logp =
          term.at({.logp = logp[y], .entropy = entropy(logits)}, LossConfig()).gradient;
      mean += std::exp(logp[y]) * by_logp * ((y == v ? 1 : 0) - std::exp(logp[v]));
    }
    std::vector<double> up = logits, down = logits;
    up[v] += 1e-6;
    down[v] -= 1e-6;
    EXPECT_NEAR(mean, -(entropy(up) - entropy(down)) / 2e-6, 1e-8) << v;
  }
}

}  // namespace
}  // namespace antisd::inline algo
