// The kernels' arithmetic, on the CPU, against double precision: values against the textbook
// formula, gradients against finite differences.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/kernels/formulas.cuh"

namespace antisd::inline ops {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

double slope(const std::function<double(double)>& f, double x) {
  constexpr double kStep = 1e-5;
  return (f(x + kStep) - f(x - kStep)) / (2 * kStep);
}

double silu(double x) {
  return x / (1 + std::exp(-x));
}

TEST(KernelFormulas, SwigluIsSiluOfTheGateTimesUp) {
  for (float gate = -30; gate <= 30; gate += 0.37f) {
    const double expected = silu(gate) * 1.7f;
    EXPECT_NEAR(swiglu(gate, 1.7f), expected, 3e-6 * std::abs(expected)) << gate;
  }
  EXPECT_EQ(swiglu(-200, 3), 0);  // e^200 overflows fp32
  EXPECT_EQ(swiglu(200, 3), 600);
  EXPECT_TRUE(std::isnan(swiglu(kNan, 1)));
}

TEST(KernelFormulas, SwigluGradientIsTheSlope) {
  for (float gate = -20; gate <= 20; gate += 0.37f) {
    const SwigluGradient gradient = swiglu_gradient(0.8f, gate, -1.3f);
    // gate * (1 - sigmoid): an error of 2^-25 in the difference, times the gate.
    EXPECT_NEAR(gradient.gate, 0.8f * -1.3f * slope(silu, gate), 2e-6) << gate;
    EXPECT_NEAR(gradient.up, 0.8f * silu(gate), 2e-6 * std::abs(gate)) << gate;
  }
  EXPECT_EQ(swiglu_gradient(1, -200, 2).gate, 0);
  EXPECT_EQ(swiglu_gradient(1, 200, 2).gate, 2);
}

TEST(KernelFormulas, RotationTurnsByTheAngleAndBack) {
  const double angle = 0.7;
  const auto c = static_cast<float>(std::cos(angle)), s = static_cast<float>(std::sin(angle));
  const RotatedPair x_axis = rotate(1, 0, c, s);
  EXPECT_FLOAT_EQ(x_axis.a, c);
  EXPECT_FLOAT_EQ(x_axis.b, s);
  const RotatedPair there = rotate(3, -2, c, s), back = rotate(there.a, there.b, c, -s);
  EXPECT_NEAR(back.a, 3, 1e-6);
  EXPECT_NEAR(back.b, -2, 1e-6);
}

TEST(KernelFormulas, RmsNormGradientIsTheSlope) {
  const std::vector<double> x = {0.3, -1.2, 2.5, 0.01}, dy_weight = {1.1, -0.4, 0.6, 2.0};
  constexpr double kEps = 0.1;  // large, so that leaving it out would show
  const auto inverse_rms = [&](const std::vector<double>& row) {
    double sum = 0;
    for (const double v : row)
      sum += v * v;
    return 1 / std::sqrt(sum / static_cast<double>(row.size()) + kEps);
  };
  double mean = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    mean += dy_weight[i] * x[i] * inverse_rms(x) / 4;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto loss = [&](double value) {
      std::vector<double> moved = x;
      moved[i] = value;
      double sum = 0;
      for (std::size_t j = 0; j < x.size(); ++j)
        sum += dy_weight[j] * moved[j];
      return sum * inverse_rms(moved);
    };
    EXPECT_NEAR(rms_norm_gradient(static_cast<float>(dy_weight[i]), static_cast<float>(x[i]),
                                  static_cast<float>(inverse_rms(x)), static_cast<float>(mean)),
                slope(loss, x[i]), 1e-6)
        << i;
  }
}

struct Scores {
  double lse, entropy;
};

Scores reference_scores(const std::vector<float>& logits, double inverse_temperature) {
  double maximum = -kInfinity, sum = 0, weighted = 0;
  for (const float l : logits)
    maximum = std::max(maximum, l * inverse_temperature);
  for (const float l : logits) {
    const double z = l * inverse_temperature, term = std::exp(z - maximum);
    sum += term;
    if (term > 0) weighted += z * term;
  }
  const double lse = maximum + std::log(sum);
  return {lse, lse - weighted / sum};
}

// A row as the kernel reduces it: 16 logits at a time by each of `threads`, -inf past the end.
LogitSums folded(const std::vector<float>& logits, float inverse_temperature, int threads = 256) {
  std::vector<LogitFold> shares(static_cast<std::size_t>(threads), empty_fold());
  float maximum = -kInfinity;
  for (std::size_t begin = 0, share = 0; begin < logits.size(); begin += 16, ++share) {
    float values[16];
    for (std::size_t i = 0; i < 16; ++i) {
      values[i] = begin + i < logits.size() ? logits[begin + i] : -kInfinity;
    }
    LogitFold& fold = shares[share % shares.size()];
    add_logits(fold, values, inverse_temperature);
    maximum = std::fmax(maximum, fold.maximum);
  }
  LogitFold total = {maximum, 0, 0};
  for (const LogitFold& share : shares) {
    const LogitFold same = raised(share, maximum);
    total.sum += same.sum;
    total.shifted += same.shifted;
  }
  return sums_of(total);
}

std::vector<float> random_logits(std::size_t count, double scale, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0, scale);
  std::vector<float> logits(count);
  for (float& l : logits)
    l = static_cast<float>(std::clamp(normal(generator), -40.0, 40.0));
  return logits;
}

TEST(KernelFormulas, FoldedScoresAgreeWithDoubles) {
  for (const double scale : {0.1, 1.0, 5.0, 15.0, 40.0}) {
    for (const std::size_t count : {1u, 15u, 17u, 4097u, 40'000u}) {
      for (const float inverse_temperature : {1.0f, 0.77f, 1 / 0.6f}) {
        const std::vector<float> logits = random_logits(count, scale, 5);
        const Scores expected = reference_scores(logits, inverse_temperature);
        const LogitSums sums = folded(logits, inverse_temperature);
        EXPECT_NEAR(log_sum_exp(sums), expected.lse, 1e-5);
        EXPECT_NEAR(entropy_of(sums), expected.entropy, 1e-5);
        const double target = logits[count / 2] * double{inverse_temperature};
        EXPECT_NEAR(log_probability(sums, scaled_logit(logits[count / 2], inverse_temperature)),
                    target - expected.lse, 1e-5)
            << scale << " " << count << " " << inverse_temperature;
      }
    }
  }
}

TEST(KernelFormulas, BlocksOfARowMergeToTheRow) {
  std::vector<float> logits = random_logits(3000, 12, 8);
  for (std::size_t i = 0; i < 1000; ++i)
    logits[i] = -kInfinity;  // the whole first block
  const Scores expected = reference_scores(logits, 1);
  LogitSums sums = folded({}, 1);
  for (std::size_t begin = 0; begin < logits.size(); begin += 1000) {
    const auto at = logits.begin() + static_cast<std::ptrdiff_t>(begin);
    sums = merged(sums, folded({at, at + 1000}, 1));
  }
  EXPECT_NEAR(log_sum_exp(sums), expected.lse, 1e-5);
  EXPECT_NEAR(entropy_of(sums), expected.entropy, 1e-5);
}

TEST(KernelFormulas, MinusInfinityHasNoProbability) {
  std::vector<float> logits(100, -kInfinity);
  EXPECT_EQ(folded(logits, 1).sum, 0);
  EXPECT_EQ(folded(logits, 1).weighted, 0);
  logits[7] = 37;
  const LogitSums one = folded(logits, 1 / 0.6f);
  EXPECT_EQ(log_probability(one, scaled_logit(37, 1 / 0.6f)), 0);
  EXPECT_EQ(entropy_of(one), 0);
  logits[60] = 37;
  const LogitSums two = folded(logits, 1);
  EXPECT_NEAR(log_probability(two, 37), -std::log(2), 1e-6);
  EXPECT_NEAR(entropy_of(two), std::log(2), 1e-5);
  EXPECT_EQ(logit_gradient(-kInfinity, false, {37, 1, 2, 3}, 1), 0);
}

TEST(KernelFormulas, NanAndInfinityReachTheScores) {
  for (const float bad : {kNan, kInfinity}) {
    for (const std::size_t place : {0u, 9u, 4095u}) {
      std::vector<float> logits = random_logits(4096, 5, 2);
      logits[place] = bad;
      const LogitSums sums = merged(folded(logits, 1), folded(random_logits(64, 50, 3), 1));
      const std::vector<float> scores = {log_sum_exp(sums), log_probability(sums, 1),
                                         entropy_of(sums)};
      EXPECT_THAT(scores, Each(::testing::IsNan())) << bad << " at " << place;
    }
  }
  EXPECT_TRUE(std::isnan(logit_gradient(kNan, false, {1, 1, 1, 1}, 1)));
}

TEST(KernelFormulas, LogitGradientIsTheSlopeOfBothScores) {
  const std::vector<float> logits = {1.5f, -2, 0.25f, 4, 3.5f};
  constexpr std::size_t kTarget = 3;
  constexpr float kInverseTemperature = 0.8f;
  // In double: finite differences move logits by less than an fp32 step.
  const auto scores = [&](std::size_t place, double value) {
    double sum = 0, weighted = 0, target = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double z = (i == place ? value : logits[i]) * double{kInverseTemperature};
      sum += std::exp(z);
      weighted += z * std::exp(z);
      if (i == kTarget) target = z;
    }
    const double lse = std::log(sum);
    return std::vector<double>{lse, lse - weighted / sum, target - lse};
  };
  const std::vector<double> here = scores(0, logits[0]);
  for (const float dentropy : {0.0f, 0.9f}) {
    const GradientRow row = {static_cast<float>(here[0]), static_cast<float>(here[1]), 1.3f,
                             dentropy};
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double expected = slope(
          [&](double value) {
            const std::vector<double> moved = scores(i, value);
            return 1.3f * moved[2] + dentropy * moved[1];
          },
          logits[i]);
      EXPECT_THAT(double{logit_gradient(logits[i], i == kTarget, row, kInverseTemperature)},
                  DoubleNear(expected, 2e-6))
          << i;
    }
  }
}

// Loshchilov and Hutter's algorithm 2, in double precision.
TEST(KernelFormulas, AdamwFollowsThePaper) {
  const double lr = 0.01, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, decay = 0.1, scale = 0.25;
  double weight = 0.7, first = 0, second = 0;
  AdamWElement element = {0.7f, 0, 0};
  for (int t = 1; t <= 40; ++t) {
    const double gradient = std::sin(t) * std::pow(10, t % 5 - 3), g = gradient * scale;
    first = beta1 * first + (1 - beta1) * g;
    second = beta2 * second + (1 - beta2) * g * g;
    const double first_hat = first / (1 - std::pow(beta1, t)),
                 second_hat = second / (1 - std::pow(beta2, t));
    weight -= lr * (first_hat / (std::sqrt(second_hat) + eps) + decay * weight);
    const AdamWFactors factors = {static_cast<float>(scale),
                                  static_cast<float>(1 - beta1),
                                  static_cast<float>(beta2),
                                  static_cast<float>(1 - beta2),
                                  static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t))),
                                  static_cast<float>(eps),
                                  static_cast<float>(lr / (1 - std::pow(beta1, t))),
                                  static_cast<float>(lr * decay)};
    element = adamw_element(static_cast<float>(gradient), element, factors);
    EXPECT_NEAR(element.weight, weight, 1e-6);
    EXPECT_NEAR(element.first, first, 1e-6 * std::abs(g) + 1e-7);
    EXPECT_NEAR(element.second, second, 1e-6 * second);
  }
  EXPECT_LT(weight, 0.69);
}

}  // namespace
}  // namespace antisd::inline ops
