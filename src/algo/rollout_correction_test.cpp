// Weights worked by hand, and the losses through token_losses(): sums written out, and finite
// differences.
#include "algo/rollout_correction.h"

#include <cmath>

#include <gmock/gmock.h>

#include "algo/shaping.h"

namespace antisd::inline algo {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pointwise;

LossConfig rules_of(const std::string& correction, double cap = 2) {
  LossConfig rules;
  rules.rollout_correction = correction;
  rules.rollout_correction_cap = cap;
  return rules;
}

// log 2 = 0.6931: the ratios are 1, 1.5, 4, 0.25 and exp(20) at most.
const std::vector<float> kBefore = {-1, -1, -.5F, -2, -1};
const std::vector<float> kRollout = {-1, -1 - std::log(1.5F), -.5F - std::log(4.F),
                                     -2 + std::log(4.F), -90};

TEST(RolloutCorrection, WeightsByHand) {
  EXPECT_THAT(rollout_weights(rules_of("none"), kBefore, {}).weight, IsEmpty());
  const RolloutWeights tis = rollout_weights(rules_of("tis"), kBefore, kRollout);
  EXPECT_THAT(tis.ratio, Pointwise(DoubleNear(1e-6), {1.0, 1.5, 4.0, .25, tis.ratio[4]}));
  EXPECT_DOUBLE_EQ(tis.ratio[4], std::exp(20));
  EXPECT_THAT(tis.weight, Pointwise(DoubleNear(1e-6), {1.0, 1.5, 2.0, .25, 2.0}));
  EXPECT_EQ(tis.cut, 2);
  EXPECT_EQ(tis.kept(5), 5);
  EXPECT_FALSE(tis.masked(2));
  const RolloutWeights mask = rollout_weights(rules_of("mask"), kBefore, kRollout);
  EXPECT_THAT(mask.weight, ElementsAre(1, 1, 0, 0, 0));
  EXPECT_EQ(mask.kept(5), 2);
  EXPECT_TRUE(mask.masked(2));
  EXPECT_THAT(rollout_weights(rules_of("mask", 5), kBefore, kRollout).weight,
              ElementsAre(1, 1, 1, 1, 0));
}

struct Losses {
  double mean = 0;
  std::vector<TokenLosses> responses;
};

// Two responses, the second all of the sampler's own; advantages 1 and -0.5.
Losses losses_of(const LossConfig& rules, const std::vector<std::vector<float>>& logp,
                 MeanOver mean) {
  MethodConfig config;
  config.name = "grpo";
  const Shaping shaping{.method = resolve_method(config, rules)};
  const std::vector<std::vector<float>> old = {kBefore, {-.5F, -.75F}},
                                        rollout = {kRollout, old[1]};
  Losses found;
  for (std::size_t r = 0; r < 2; ++r) {
    Response response;
    response.group_advantage = r == 0 ? 1 : -.5;
    response.sampling_logp = rollout[r];
    found.responses.push_back(
        token_losses(shaping, response, {.logp = logp[r], .old_logp = old[r]}, mean));
    for (const double loss : found.responses.back().loss)
      found.mean += loss / static_cast<double>(mean.tokens);
  }
  return found;
}

const std::vector<std::vector<float>> kNow = {{-1.1F, -.9F, -.45F, -2.1F, -.95F}, {-.55F, -.7F}};

// Without clipping a token's loss is -A r w.
TEST(RolloutCorrection, MultipliesTheLossOfEachToken) {
  const Losses tis = losses_of(rules_of("tis"), kNow, {.tokens = 7, .sequences = 2});
  const double weights[] = {1, 1.5, 2, .25, 2};
  double sum = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    const double loss = -weights[i] * std::exp(double(kNow[0][i]) - kBefore[i]);
    EXPECT_NEAR(tis.responses[0].loss[i], loss, 1e-6);
    sum += loss;
  }
  sum += .5 * (std::exp(-.55 + .5) + std::exp(-.7 + .75));
  EXPECT_NEAR(tis.mean, sum / 7, 1e-6);
}

// The mean is over the two tokens that are left of the first response, and the second's.
TEST(RolloutCorrection, MaskedTokensCountInNoMean) {
  const double first[] = {-std::exp(-.1), -std::exp(.1)};
  const double second[] = {.5 * std::exp(-.05), .5 * std::exp(.05)};
  LossConfig rules = rules_of("mask");
  const MeanOver kept{.tokens = 4, .sequences = 2};
  const Losses by_token = losses_of(rules, kNow, kept);
  EXPECT_NEAR(by_token.mean, (first[0] + first[1] + second[0] + second[1]) / 4, 1e-6);
  EXPECT_THAT(by_token.responses[0].gradient,
              Pointwise(DoubleNear(1e-6), {first[0] / 4, first[1] / 4, 0.0, 0.0, 0.0}));
  rules.aggregation = "seq-mean-token-mean";
  const double means = (first[0] + first[1]) / 2 / 2 + (second[0] + second[1]) / 2 / 2;
  EXPECT_NEAR(losses_of(rules, kNow, kept).mean, means, 1e-6);

  NamedSums sums;
  for (const TokenLosses& losses : by_token.responses)
    add_sums(sums, losses);
  EXPECT_EQ(sums.at("loss").count, 4);
  EXPECT_EQ(sums.at("log_ratio").count, 4);
  EXPECT_EQ(sums.at("advantage").count, 7);
  EXPECT_NEAR(sums.mean("loss"), by_token.mean, 1e-12);
  EXPECT_DOUBLE_EQ(sums.mean("rollout_cut"), 3.0 / 7);
  EXPECT_DOUBLE_EQ(sums.at("rollout_ratio").max, std::exp(20));
}

TEST(RolloutCorrection, AResponseWithoutAnyTokenLeftAddsNothing) {
  LossConfig rules = rules_of("mask", 1);  // no ratio but 1 is left
  rules.aggregation = "seq-mean-token-mean";
  ResponseBatch batch;
  batch.groups.resize(1);
  batch.groups[0].responses.resize(2);
  Response& gone = batch.groups[0].responses[0];
  gone.ids = {1, 2};
  gone.before.logp = {-1, -1};
  gone.sampling_logp = {-2, -.5F};
  Response& whole = batch.groups[0].responses[1];
  whole.ids = {1, 2, 3};
  whole.before.logp = whole.sampling_logp = {-1, -1, -2};
  const std::vector<std::size_t> numbers = {0, 1};
  const MeanOver mean = kept_over(rules, batch, numbers);
  EXPECT_EQ(mean.tokens, 3);
  EXPECT_EQ(mean.sequences, 1);
  MethodConfig config;
  config.name = "grpo";
  gone.group_advantage = 1;
  const TokenLosses losses =
      token_losses({.method = resolve_method(config, rules)}, gone,
                   {.logp = gone.before.logp, .old_logp = gone.before.logp}, mean);
  EXPECT_THAT(losses.loss, ElementsAre(0, 0));
  EXPECT_THAT(losses.gradient, ElementsAre(0, 0));
}

// With the weights held, the gradient is the derivative of the mean.
TEST(RolloutCorrection, FiniteDifferencesGiveTheGradient) {
  const float step = 1.F / 1024;  // exact in fp32
  for (const char* correction : {"tis", "mask"}) {
    for (const char* policy : {"clip", "cispo"}) {
      LossConfig rules = rules_of(correction);
      rules.policy = policy;
      rules.clip_high = .3;
      if (rules.policy == "cispo") rules.clip_low = 1, rules.clip_high = 100;
      const MeanOver mean = rules.rollout_correction == "mask" ? MeanOver{4, 2} : MeanOver{7, 2};
      const Losses at = losses_of(rules, kNow, mean);
      for (std::size_t r = 0; r < 2; ++r) {
        for (std::size_t i = 0; i < kNow[r].size(); ++i) {
          auto up = kNow, down = kNow;
          up[r][i] += step;
          down[r][i] -= step;
          double slope = (losses_of(rules, up, mean).mean - losses_of(rules, down, mean).mean) /
                         (double(up[r][i]) - down[r][i]);
          if (rules.policy == "cispo") {  // its ratio is a constant, which the difference is not
            const double ratio = std::exp(double(kNow[r][i]) - (r == 0 ? kBefore[i]
                                                                : i    ? -.75
                                                                       : -.5));
            const double weight = at.responses[r].rollout.at(i);
            const double advantage = r == 0 ? 1 : -.5;
            slope = -advantage * ratio * weight / static_cast<double>(mean.tokens);
          }
          EXPECT_NEAR(at.responses[r].gradient[i], slope, 1e-5) << correction << " " << policy;
        }
      }
    }
  }
}

// On-policy: s itself is the old policy, and its weight is no part of the derivative.
TEST(RolloutCorrection, WithoutOldScoresTheForwardPassIsTheOldPolicy) {
  MethodConfig config;
  config.name = "grpo";
  const Shaping shaping{.method = resolve_method(config, rules_of("tis"))};
  Response response;
  response.group_advantage = 3;
  response.sampling_logp = kRollout;
  const TokenLosses losses = token_losses(shaping, response, {.logp = kBefore}, {.tokens = 5});
  EXPECT_THAT(losses.gradient, Pointwise(DoubleNear(1e-5), {-.6, -.9, -1.2, -.15, -1.2}));
  EXPECT_THAT(losses.rollout.weight, Pointwise(DoubleNear(1e-6), {1.0, 1.5, 2.0, .25, 2.0}));
}

}  // namespace
}  // namespace antisd::inline algo
