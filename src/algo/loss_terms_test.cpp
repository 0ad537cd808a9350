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

TEST(LossTerms, EveryDerivativeIsThatOfItsLoss) {
  for (const LossTerm& term : loss_terms()) {
    for (const double logp : {-4.0, -1.1, -1.0, -.2}) {
      const auto at = [&](double s) { return term.at({s, -1}).loss; };
      EXPECT_NEAR(term.at({logp, -1}).gradient, (at(logp + 1e-6) - at(logp - 1e-6)) / 2e-6, 1e-4)
          << term.name << " at " << logp;
    }
  }
}

}  // namespace
}  // namespace antisd::inline algo
