// loss.aggregation, loss.ratio and loss.policy through token_losses(): sums written out by hand,
// and finite differences of the whole mean.
#include "algo/aggregation.h"

#include <cmath>

#include <gmock/gmock.h>

#include "algo/shaping.h"

namespace antisd::inline algo {
namespace {

constexpr const char* kAggregations[] = {"token-mean", "seq-mean-token-mean", "seq-mean-token-sum",
                                         "seq-mean-token-sum-norm"};
using Rows = std::vector<std::vector<float>>;

const Rows kOld = {{-1, -2}, {-.5, -.25, -3, -1.5}, {-.75}};
const Rows kNew = {{-1.25, -1.75}, {-.625, -.25, -2.5, -1.625}, {-.5}};
constexpr double kAdvantages[] = {1, -.5, .75};
constexpr MeanOver kMean = {.tokens = 7, .sequences = 3};

// The aggregated loss of three responses with these log-probabilities, and its derivatives.
struct Whole {
  double loss = 0;
  std::vector<std::vector<double>> gradient;
};
Whole whole(const LossConfig& rules, const Rows& logp) {
  MethodConfig config;
  config.name = "grpo";
  const Shaping shaping{.method = resolve_method(config, rules)};
  Whole found;
  for (std::size_t r = 0; r < logp.size(); ++r) {
    Response response;
    response.group_advantage = kAdvantages[r];
    const TokenLosses losses =
        token_losses(shaping, response, {.logp = logp[r], .old_logp = kOld[r]}, kMean);
    for (const double loss : losses.loss)
      found.loss += loss / static_cast<double>(kMean.tokens);
    found.gradient.push_back(losses.gradient);
  }
  return found;
}

// The definition, written out: the losses of tokens by formula, then the sums of each name.
TEST(Aggregation, IsTheSumThatItsNameSays) {
  LossConfig rules;
  rules.clip_low = 1;  // no clipping
  rules.clip_high = 100;
  rules.dual_clip = 100;
  rules.norm_tokens = 16;
  double tokens = 0, sums = 0, means = 0;
  for (std::size_t r = 0; r < kOld.size(); ++r) {
    double sum = 0;
    for (std::size_t i = 0; i < kOld[r].size(); ++i)
      sum -= kAdvantages[r] * std::exp(double(kNew[r][i]) - kOld[r][i]);
    tokens += sum / 7;
    sums += sum / 3;
    means += sum / static_cast<double>(kOld[r].size()) / 3;
  }
  const double expected[] = {tokens, means, sums, sums / 16};
  for (int i = 0; i < 4; ++i) {
    rules.aggregation = kAggregations[i];
    EXPECT_NEAR(whole(rules, kNew).loss, expected[i], 1e-12) << kAggregations[i];
  }
}

TEST(Aggregation, FiniteDifferencesOfTheWholeGiveItsGradient) {
  const float step = 1.F / 1024;  // exact in fp32
  for (const char* ratio : {"token", "sequence"}) {
    for (const char* aggregation : kAggregations) {
      LossConfig rules;
      rules.ratio = ratio;
      rules.aggregation = aggregation;
      rules.norm_tokens = 16;
      const Whole at = whole(rules, kNew);
      for (std::size_t r = 0; r < kNew.size(); ++r) {
        for (std::size_t i = 0; i < kNew[r].size(); ++i) {
          Rows up = kNew, down = kNew;
          up[r][i] += step;
          down[r][i] -= step;
          const double slope =
              (whole(rules, up).loss - whole(rules, down).loss) / (2 * double(step));
          EXPECT_NEAR(at.gradient[r][i], slope, 1e-6)
              << ratio << " " << aggregation << " " << r << " " << i;
        }
      }
    }
  }
}

// -A w log p with w = clip(r): by hand, with the weight held.
TEST(Aggregation, CispoKeepsTheGradientOfClippedTokens) {
  LossConfig rules;
  rules.policy = "cispo";
  rules.clip_low = 1;
  rules.clip_high = .25;
  const Whole found = whole(rules, kNew);
  double loss = 0;
  for (std::size_t r = 0; r < kNew.size(); ++r) {
    for (std::size_t i = 0; i < kNew[r].size(); ++i) {
      const double weight = std::min(1.25, std::exp(double(kNew[r][i]) - kOld[r][i]));
      loss -= kAdvantages[r] * weight * kNew[r][i] / 7;
      EXPECT_NEAR(found.gradient[r][i], -kAdvantages[r] * weight / 7, 1e-12);
    }
  }
  EXPECT_NEAR(found.loss, loss, 1e-12);
}

// AntiSD with lambda = 0 is each of them bit for bit.
TEST(Aggregation, ATermOfWeightZeroChangesNoBit) {
  for (const char* aggregation : kAggregations) {
    for (const char* ratio : {"token", "sequence"}) {
      for (const char* policy : {"clip", "cispo"}) {
        LossConfig rules;
        rules.aggregation = aggregation;
        rules.ratio = ratio;
        rules.policy = policy;
        const auto losses = [&](const char* name, double lambda) {
          MethodConfig config;
          config.name = name;
          const Shaping shaping{.method = resolve_method(config, rules)};
          Response response;
          response.group_advantage = -.5;
          response.lambda = lambda;
          response.teacher.logp = {-.1F, -.2F, -.3F, -.4F};
          return token_losses(shaping, response, {.logp = kNew[1], .old_logp = kOld[1]}, kMean);
        };
        const TokenLosses grpo = losses("grpo", 0);
        EXPECT_EQ(losses("antisd", 0).gradient, grpo.gradient);
        EXPECT_EQ(losses("antisd", 0).loss, grpo.loss);
        EXPECT_NE(losses("antisd", .5).gradient, grpo.gradient);
      }
    }
  }
}

}  // namespace
}  // namespace antisd::inline algo
