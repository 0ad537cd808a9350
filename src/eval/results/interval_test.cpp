// Coverage of the intervals: benchmarks of known accuracy are simulated, 2,000 for each line of the
// printed table (docs/evaluation.md quotes it).
#include "eval/results/interval.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "algo/evaluation.h"

namespace antisd::inline eval {
namespace {

constexpr int kBenchmarks = 2000;
constexpr int kProblems = 30;

// The distribution of the problems' accuracies in a benchmark.
struct Difficulty {
  const char* name;
  double spread;  // of a beta distribution: a + b; 0: every problem is always or never solved;
                  // infinity: all alike
};
constexpr double kAlike = std::numeric_limits<double>::infinity();
const Difficulty kDifficulties[] = {
    {"0 or 1", 0}, {"beta 0.3", 0.3}, {"beta 1", 1}, {"beta 3", 3}, {"alike", kAlike}};

double draw_accuracy(const Difficulty& difficulty, double mean, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform;
  if (difficulty.spread == 0) return uniform(random) < mean ? 1 : 0;
  if (difficulty.spread == kAlike) return mean;
  std::gamma_distribution<double> a(mean * difficulty.spread), b((1 - mean) * difficulty.spread);
  const double x = a(random), y = b(random);
  if (x + y == 0) return uniform(random) < mean ? 1 : 0;  // both below the smallest double
  return x / (x + y);
}

ProblemCount draw_problem(double accuracy, int n, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform;
  ProblemCount problem{.right = 0, .graded = n};
  for (int i = 0; i < n; ++i)
    problem.right += uniform(random) < accuracy;
  return problem;
}

double coverage(const Difficulty& difficulty, double mean, int n, std::mt19937_64& random) {
  int covered = 0;
  for (int i = 0; i < kBenchmarks; ++i) {
    std::vector<ProblemCount> problems;
    for (int p = 0; p < kProblems; ++p)
      problems.push_back(draw_problem(draw_accuracy(difficulty, mean, random), n, random));
    const Interval interval = accuracy_interval(problems);
    covered += interval.low <= mean && mean <= interval.high;
  }
  return static_cast<double>(covered) / kBenchmarks;
}

TEST(AccuracyInterval, CoversNinetyFivePercent) {
  std::mt19937_64 random(20);
  double sum = 0;
  int lines = 0;
  fmt::print("{:>3} {:<9}", "n", "problems");
  const double means[] = {0.02, 0.1, 0.3, 0.5, 0.98};
  for (const double mean : means)
    fmt::print(" {:>6}", mean);
  fmt::print("\n");
  for (const int n : {1, 4, 32}) {
    for (const Difficulty& difficulty : kDifficulties) {
      if (n == 1 && difficulty.spread != kAlike) continue;  // one sample cannot tell them apart
      fmt::print("{:>3} {:<9}", n, difficulty.name);
      for (const double mean : means) {
        const double share = coverage(difficulty, mean, n, random);
        fmt::print(" {:6.3f}", share);
        sum += share;
        ++lines;
        // If a count can take only few values (one sample, or always the same verdict), there is
        // nothing between too wide and too narrow.
        const bool coarse = n == 1 || difficulty.spread == 0;
        EXPECT_GE(share, 0.93) << n << " " << difficulty.name << " " << mean;
        EXPECT_LE(share, coarse ? 0.99 : 0.975) << n << " " << difficulty.name << " " << mean;
      }
      fmt::print("\n");
    }
  }
  fmt::print("mean {:.4f}\n", sum / lines);
}

// Accuracies as they occur, not at the worst case.
TEST(AccuracyInterval, CoversNinetyFivePercentOfBenchmarksOfAnyAccuracy) {
  std::mt19937_64 random(21);
  std::uniform_real_distribution<double> uniform(0.02, 0.98);
  for (const int n : {1, 4, 32}) {
    int covered = 0;
    for (int i = 0; i < kBenchmarks; ++i) {
      const double mean = uniform(random);
      const Difficulty& difficulty =
          kDifficulties[static_cast<std::size_t>(i) % std::size(kDifficulties)];
      std::vector<ProblemCount> problems;
      for (int p = 0; p < kProblems; ++p)
        problems.push_back(draw_problem(draw_accuracy(difficulty, mean, random), n, random));
      const Interval interval = accuracy_interval(problems);
      covered += interval.low <= mean && mean <= interval.high;
    }
    const double share = static_cast<double>(covered) / kBenchmarks;
    fmt::print("n = {}: {:.4f}\n", n, share);
    EXPECT_NEAR(share, 0.95, 0.015) << n;
  }
}

TEST(PairedDifference, CoversNinetyFivePercent) {
  std::mt19937_64 random(22);
  const Difficulty difficulty = {"beta 1", 1};
  for (const int n : {1, 4, 32}) {
    for (const double gain : {0.0, 0.1, 0.4}) {
      int covered = 0;
      for (int i = 0; i < kBenchmarks; ++i) {
        std::vector<ProblemCount> before, after;
        for (int p = 0; p < kProblems; ++p) {
          // The second model fails where the first does, and less often by a share `gain`.
          const double accuracy = draw_accuracy(difficulty, 0.4, random);
          before.push_back(draw_problem(accuracy, n, random));
          after.push_back(draw_problem(accuracy + gain * (1 - accuracy), n, random));
        }
        const Difference difference = paired_difference(after, before);
        const double truth = gain * 0.6;
        covered += difference.interval.low <= truth && truth <= difference.interval.high;
      }
      const double share = static_cast<double>(covered) / kBenchmarks;
      fmt::print("difference, n = {}, true gain {:.2f}: {:.4f}\n", n, gain * 0.6, share);
      EXPECT_GE(share, 0.935);
      EXPECT_LE(share, n == 1 ? 0.985 : 0.97);
    }
  }
}

TEST(AverageInterval, CoversNinetyFivePercent) {
  std::mt19937_64 random(23);
  const double means[] = {0.1, 0.3, 0.5, 0.6, 0.97};
  int covered = 0;
  double truth = 0;
  for (const double mean : means)
    truth += mean / std::size(means);
  for (int i = 0; i < kBenchmarks; ++i) {
    std::vector<Estimate> estimates;
    for (const double mean : means) {
      std::vector<ProblemCount> problems;
      double sum = 0;
      for (int p = 0; p < kProblems; ++p) {
        problems.push_back(draw_problem(draw_accuracy({"beta 1", 1}, mean, random), 4, random));
        sum += problems.back().accuracy();
      }
      estimates.push_back({sum / kProblems, accuracy_interval(problems)});
    }
    const Interval interval = average_interval(estimates);
    covered += interval.low <= truth && truth <= interval.high;
  }
  fmt::print("average of five: {:.4f}\n", static_cast<double>(covered) / kBenchmarks);
  EXPECT_NEAR(static_cast<double>(covered) / kBenchmarks, 0.95, 0.015);
}

// pass@k of problems whose accuracies have a beta distribution: E (1 - p)^k is a product.
TEST(MeanInterval, OfPassAtKCoversNinetyFivePercent) {
  std::mt19937_64 random(24);
  constexpr int kSamples = 32;
  for (const double spread : {0.3, 1.0, 3.0}) {
    for (const double mean : {0.02, 0.3, 0.9}) {
      for (const int k : {4, 16}) {
        const Difficulty difficulty = {"", spread};
        double none = 1;
        for (int i = 0; i < k; ++i)
          none *= ((1 - mean) * spread + i) / (spread + i);
        int covered = 0;
        for (int i = 0; i < kBenchmarks; ++i) {
          std::vector<double> values;
          for (int p = 0; p < kProblems; ++p) {
            const double accuracy = draw_accuracy(difficulty, mean, random);
            values.push_back(
                pass_at_k(kSamples, draw_problem(accuracy, kSamples, random).right, k));
          }
          const Interval interval = mean_interval(values);
          covered += interval.low <= 1 - none && 1 - none <= interval.high;
        }
        const double share = static_cast<double>(covered) / kBenchmarks;
        fmt::print("pass@{:<2} {:.3f} of 32, beta {}: {:.4f}\n", k, 1 - none, spread, share);
        EXPECT_GE(share, 0.935) << k << " " << spread << " " << mean;
        EXPECT_LE(share, 0.985) << k << " " << spread << " " << mean;
      }
    }
  }
}

TEST(MeanInterval, IsWilsonsWhereASampleIsAProblem) {
  // 9 of 30 right: the variance of the mean is divided by 29.
  std::vector<double> values(30, 0);
  std::fill_n(values.begin(), 9, 1);
  const double t = 1.9599640, m = 29, p = 0.3;
  const double centre = (p + t * t / (2 * m)) / (1 + t * t / m);
  const double half = t / (1 + t * t / m) * std::sqrt(p * (1 - p) / m + t * t / (4 * m * m));
  const Interval interval = mean_interval(values);
  EXPECT_NEAR(interval.low, centre - half, 1e-4);
  EXPECT_NEAR(interval.high, centre + half, 1e-4);
}

TEST(MeanInterval, KnowsItsEdges) {
  EXPECT_TRUE(std::isnan(mean_interval({}).low));
  const double one[] = {0.25};
  EXPECT_EQ(mean_interval(one).low, 0);
  EXPECT_EQ(mean_interval(one).high, 1);
  const std::vector<double> wrong(30, 0), right(30, 1);
  EXPECT_EQ(mean_interval(wrong).low, 0);
  EXPECT_GT(mean_interval(wrong).high, 0.05);
  EXPECT_EQ(mean_interval(right).high, 1);
  EXPECT_NEAR(mean_interval(right).low, 1 - mean_interval(wrong).high, 1e-12);
}

TEST(AccuracyInterval, IsTheSameForRightAndWrong) {
  const ProblemCount few[] = {{0, 4}, {1, 4}, {0, 4}, {3, 4}, {0, 4}, {0, 4}, {0, 2}, {0, 0}};
  std::vector<ProblemCount> turned;
  for (const ProblemCount& problem : few)
    turned.push_back({problem.graded - problem.right, problem.graded});
  const Interval a = accuracy_interval(few), b = accuracy_interval(turned);
  EXPECT_NEAR(a.low, 1 - b.high, 1e-9);
  EXPECT_NEAR(a.high, 1 - b.low, 1e-9);
}

TEST(PairedDifference, IsOfPairs) {
  // Differences 0.5, 0, 0.25, and a problem that one side has no grade for.
  const ProblemCount a[] = {{2, 2}, {1, 2}, {4, 4}, {1, 1}}, b[] = {{1, 2}, {2, 4}, {3, 4}, {0, 0}};
  const Difference difference = paired_difference(a, b);
  EXPECT_EQ(difference.problems, 3);
  EXPECT_NEAR(difference.mean, 0.25, 1e-12);
  // Sum of squares 0.125, noise (0.25 + 0.1875 + 0.125) / 3 = 0.1875; Student's 4.3027.
  const double half = 4.302653 * std::sqrt(0.125 / 2 / 3 + 0.1875 / 9);
  EXPECT_NEAR(difference.interval.high, std::min(1.0, 0.25 + half), 1e-6);
  // Two models that agree on these problems may differ on others.
  const std::vector<ProblemCount> same(30, {1, 1});
  const Difference none = paired_difference(same, same);
  EXPECT_EQ(none.mean, 0);
  EXPECT_GT(none.interval.high, 0.03);
  EXPECT_LT(none.interval.high, 0.1);
}

// P(|T| <= t) for integer degrees of freedom: Abramowitz and Stegun's finite sums (26.7.3, 26.7.4).
double two_sided(double t, int degrees) {
  const double angle = std::atan(t / std::sqrt(degrees)), cosine = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? cosine : 1, sum = degrees > 1 ? term : 0;
  for (int k = odd ? 3 : 2; k < degrees; k += 2) {
    term *= cosine * cosine * (k - 1) / k;
    sum += term;
  }
  return odd ? 2 / std::numbers::pi * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;
}

TEST(StudentQuantile, EqualsTheTable) {
  EXPECT_NEAR(student_quantile(1), 12.7062047, 1e-6);
  EXPECT_NEAR(student_quantile(2), 4.30265273, 1e-7);
  EXPECT_NEAR(student_quantile(5), 2.57058184, 1e-7);
  EXPECT_NEAR(student_quantile(29), 2.04522964, 1e-7);
  EXPECT_NEAR(student_quantile(200), 1.97189622, 1e-7);
  EXPECT_NEAR(student_quantile(201), 1.97183649, 1e-6);
  EXPECT_NEAR(student_quantile(1'000'000), 1.95996636, 1e-7);
  EXPECT_NEAR(student_quantile(std::numeric_limits<double>::infinity()), 1.95996398, 1e-7);
  for (int degrees = 1; degrees <= 300; ++degrees)
    EXPECT_NEAR(two_sided(student_quantile(degrees), degrees), 0.95, 1e-8) << degrees;
}

TEST(StudentQuantile, FallsBetweenWholeDegrees) {
  for (double degrees = 1; degrees < 250; degrees += 0.25)
    EXPECT_GT(student_quantile(degrees), student_quantile(degrees + 0.25)) << degrees;
}

}  // namespace
}  // namespace antisd::inline eval
