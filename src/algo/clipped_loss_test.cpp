// max(-A r, -A clip(r)) with its bound for A < 0, and the KL penalty e^d - d - 1: published values,
// and derivatives against finite differences.
#include "algo/clipped_loss.h"

#include <cmath>

#include <gmock/gmock.h>

namespace antisd::inline algo {
namespace {

const LossConfig kPaper;

double loss_at(double advantage, double ratio) {
  return clipped_loss(advantage, std::log(ratio), kPaper).loss;
}

TEST(ClippedLoss, HasThePublishedValues) {
  EXPECT_NEAR(loss_at(1, 1.5), -1.2, 1e-12);
  EXPECT_NEAR(loss_at(-1, 1.5), 1.5, 1e-12);
  EXPECT_NEAR(loss_at(-1, 4), 3, 1e-12);
  EXPECT_NEAR(loss_at(1, .5), -.5, 1e-12);  // pessimistic: the smaller gain
  EXPECT_NEAR(loss_at(-1, .5), .8, 1e-12);
}

TEST(ClippedLoss, OnPolicyItIsThePolicyGradient) {
  for (const double advantage : {2.474867, -.353552, 0.0}) {
    const ClippedLoss token = clipped_loss(advantage, 0, kPaper);
    EXPECT_EQ(token.loss, -advantage);
    EXPECT_EQ(token.gradient, -advantage);
    EXPECT_FALSE(token.clipped || token.dual_clipped);
  }
}

TEST(ClippedLoss, TheDerivativeIsTheLosss) {
  int flat = 0, steep = 0;
  for (const double advantage : {-2.0, -.3, .7, 2.5}) {
    for (const double log_ratio : {-25.0, -3.0, -.5, -.2, -.1, 0.0, .1, .15, .5, 1.0, 2.0, 21.0}) {
      const auto loss = [&](double x) { return clipped_loss(advantage, x, kPaper).loss; };
      const double expected = (loss(log_ratio + 1e-6) - loss(log_ratio - 1e-6)) / 2e-6;
      const double gradient = clipped_loss(advantage, log_ratio, kPaper).gradient;
      EXPECT_NEAR(gradient, expected, 1e-6 * std::max(1.0, std::abs(expected)))
          << advantage << " at " << log_ratio;
      ++(gradient == 0 ? flat : steep);
    }
  }
  EXPECT_GT(flat, 10);
  EXPECT_GT(steep, 10);
}

TEST(ClippedLoss, SaysWhichBoundHeld) {
  EXPECT_TRUE(clipped_loss(1, std::log(1.5), kPaper).clipped);
  EXPECT_FALSE(clipped_loss(-1, std::log(1.5), kPaper).clipped);
  EXPECT_TRUE(clipped_loss(-1, std::log(.5), kPaper).clipped);
  EXPECT_TRUE(clipped_loss(-1, std::log(4), kPaper).dual_clipped);
  EXPECT_FALSE(clipped_loss(1, std::log(4), kPaper).dual_clipped);
}

TEST(ClippedLoss, HugeRatiosStayFinite) {
  for (const double log_ratio : {1e6, -1e6}) {
    for (const double advantage : {-1.0, 1.0}) {
      const ClippedLoss token = clipped_loss(advantage, log_ratio, kPaper);
      EXPECT_TRUE(std::isfinite(token.loss));
      EXPECT_EQ(token.gradient, 0);
    }
  }
}

TEST(KlPenalty, IsAnUnbiasedEstimateOfTheDivergence) {
  const double p[] = {.5, .3, .2}, q[] = {.2, .3, .5};
  double estimate = 0, divergence = 0;
  for (int v = 0; v < 3; ++v) {
    estimate += p[v] * kl_penalty(std::log(p[v]), std::log(q[v])).loss;
    divergence += p[v] * std::log(p[v] / q[v]);
  }
  EXPECT_NEAR(estimate, divergence, 1e-12);
}

TEST(KlPenalty, TheDerivativeIsTheLosss) {
  EXPECT_EQ(kl_penalty(-1, -1).loss, 0);
  EXPECT_EQ(kl_penalty(-1, -1).gradient, 0);
  for (const double logp : {-4.0, -1.1, -1.0, -.2, -30.0}) {
    const double expected =
        (kl_penalty(logp + 1e-6, -1).loss - kl_penalty(logp - 1e-6, -1).loss) / 2e-6;
    EXPECT_NEAR(kl_penalty(logp, -1).gradient, expected, 1e-6 * std::max(1.0, std::abs(expected)));
    EXPECT_GE(kl_penalty(logp, -1).loss, 0);
  }
  EXPECT_TRUE(std::isfinite(kl_penalty(-1e9, 0).loss));
}

}  // namespace
}  // namespace antisd::inline algo
