// pass@k = 1 - C(n-c, k) / C(n, k) against enumeration, the first maximum, and the speedup: step of
// the baseline's peak / first step that reaches it.
#include "algo/evaluation.h"

#include <cmath>

#include <gmock/gmock.h>

namespace antisd::inline algo {
namespace {

TEST(PassAtK, IsUnbiased) {
  EXPECT_NEAR(pass_at_k(4, 1, 2), .5, 1e-12);
  EXPECT_NEAR(pass_at_k(32, 4, 8), .704505006, 1e-9);
  EXPECT_EQ(pass_at_k(4, 1, 4), 1);
  EXPECT_EQ(pass_at_k(4, 0, 4), 0);
  EXPECT_EQ(pass_at_k(4, 4, 1), 1);
  EXPECT_NEAR(pass_at_k(32, 5, 1), 5.0 / 32, 1e-12);
}

TEST(PassAtK, IsTheShareOfDrawsWithAHit) {
  const int n = 6, c = 2, k = 3;
  int draws = 0, hits = 0;
  for (int subset = 0; subset < (1 << n); ++subset) {
    if (__builtin_popcount(subset) != k) continue;
    ++draws;
    hits += (subset & ((1 << c) - 1)) != 0;
  }
  EXPECT_NEAR(pass_at_k(n, c, k), static_cast<double>(hits) / draws, 1e-12);
}

TEST(Speedup, IsTheStepOfTheBaselinesPeakOverTheFirstReach) {
  const EvaluatedStep baseline[] = {{100, 50}, {200, 57.4}};
  const EvaluatedStep early[] = {{10, 40}, {30, 57.4}, {40, 60}};  // equality counts
  const EvaluatedStep never[] = {{10, 40}, {200, 57.3}};
  EXPECT_EQ(speedup_text(speedup(baseline, early)), "6.7");
  EXPECT_EQ(speedup_text(speedup(baseline, never)), "x");
  EXPECT_EQ(speedup_text(speedup(baseline, baseline)), "1.0");
  EXPECT_EQ(speedup_text(speedup(baseline, {})), "x");
  const EvaluatedStep at_once[] = {{0, 60}};
  EXPECT_TRUE(std::isinf(*speedup(baseline, at_once)));
}

TEST(Peak, IsTheFirstMaximum) {
  const EvaluatedStep curve[] = {{10, 1}, {20, 3}, {30, 3}, {40, 2}};
  EXPECT_EQ(peak(curve).step, 20);
}

}  // namespace
}  // namespace antisd::inline algo
