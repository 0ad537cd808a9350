// A_{i,t} = A_i - lambda phi(u) and the other methods' compositions, with published values; a
// closed gate equals GRPO bit for bit; the mean is over the tokens of the whole batch; and the
// rules of the released code.
#include "algo/shaping.h"

#include <cmath>

#include <gmock/gmock.h>

#include "algo/phi.h"
#include "core/check.h"

namespace antisd::inline algo {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using Floats = std::vector<float>;

constexpr GateReading kOpen = {.position = GatePosition::kOpen};
constexpr GateReading kClosed = {.position = GatePosition::kClosedLow};

Method antisd() {
  return {.sign = -1, .lambda_max = .5};
}

// Responses with given advantages and teacher scores, by number.
struct Shaped {
  Shaping shaping;
  ResponseBatch batch;
};

Shaped shaped(const Method& method, const Advantages& advantages,
              const std::vector<TokenScores>& teacher, const GateReading& gate,
              const Moments& warmup_u = {}) {
  Shaped shaped;
  for (std::size_t r = 0; r < advantages.size(); ++r) {
    Response& response = r == 0 ? shaped.batch.groups.emplace_back().responses.emplace_back()
                                : shaped.batch.groups.front().responses.emplace_back();
    response.group_advantage = advantages[r];
    if (r < teacher.size()) response.teacher = teacher[r];
  }
  shaped.shaping = antisd::make_shaping(method, gate, warmup_u, shaped.batch);
  return shaped;
}

TokenLosses token_losses(const Shaped& shaped, std::size_t r, const StudentTokens& student,
                         std::int64_t mean_tokens) {
  return antisd::token_losses(shaped.shaping, shaped.batch[r], student, {.tokens = mean_tokens});
}

TokenAdvantages token_advantages(const Shaped& shaped, std::size_t r,
                                 std::span<const float> student_logp) {
  return antisd::token_advantages(shaped.shaping, shaped.batch[r], student_logp);
}

// The advantage of a single token whose student log-probability is 0.
double advantage_at(const Method& method, double group_advantage, double u,
                    const GateReading& gate = kOpen) {
  const Floats student = {-5};
  const std::vector<TokenScores> teacher = {{.logp = {static_cast<float>(u - 5)}, .entropy = {1}}};
  return token_advantages(shaped(method, {group_advantage}, teacher, gate), 0, student)
      .advantage[0];
}

TEST(TokenAdvantages, HaveThePublishedValues) {
  EXPECT_NEAR(advantage_at(antisd(), 2.474867, -3), 2.636007, 1e-6);
  EXPECT_NEAR(advantage_at(antisd(), 2.474867, std::log(8)), 2.098848, 1e-6);
  Method product = antisd();
  product.composition = Composition::kMultiplicative;
  EXPECT_NEAR(advantage_at(product, -.353553, -3), -.410525, 1e-6);
  EXPECT_EQ(advantage_at(product, 0, -3), 0);
}

TEST(TokenAdvantages, OfEveryMethod) {
  const double u = 1.25, a = .75;
  EXPECT_EQ(advantage_at({.sign = 0}, a, u), a);
  EXPECT_EQ(advantage_at({.sign = +1, .divergence = Divergence::kKl, .lambda_max = .5}, a, u),
            a + .5 * u);
  EXPECT_EQ(
      advantage_at(
          {.group_advantage = false, .sign = +1, .divergence = Divergence::kKl, .lambda_max = .5},
          a, u),
      .5 * u);
  EXPECT_EQ(advantage_at({.sign = -1, .divergence = Divergence::kKl, .lambda_max = .5}, a, u),
            a - .5 * u);
  EXPECT_EQ(advantage_at(antisd(), a, u), a - .5 * phi(u));
  EXPECT_EQ(advantage_at(antisd(), a, u, kClosed), a);

  Method alone = antisd();
  alone.teacher = false;  // u = -s = 5
  EXPECT_EQ(token_advantages(shaped(alone, {a}, {}, kOpen), 0, Floats{-5}).advantage[0],
            a - .5 * phi(5));
}

// Every rollout is wrong: GRPO and the multiplicative form learn nothing, AntiSD does.
TEST(TokenLosses, AGroupWithoutACorrectResponseStillTeachesAntiSd) {
  const std::vector<TokenScores> teacher(2, {.logp = {-1, -3}, .entropy = {1, 1}});
  const Floats student = {-2, -2};
  const Advantages advantages = group_advantages(std::vector<std::optional<double>>{0, 0});
  Method product = antisd();
  product.composition = Composition::kMultiplicative;
  EXPECT_THAT(token_losses(shaped(antisd(), advantages, teacher, kOpen), 1, {student}, 4).gradient,
              ElementsAre(.5 * phi(1) / 4, .5 * phi(-1) / 4));
  EXPECT_THAT(token_losses(shaped(product, advantages, teacher, kOpen), 1, {student}, 4).gradient,
              Each(0));
}

TEST(TokenLosses, AClosedGateIsGrpoBitForBit) {
  const Floats student = {-.3F, -7.25F, -1e-3F, -30};
  const std::vector<TokenScores> teacher = {
      {.logp = {-.1F, -9, -std::numeric_limits<float>::infinity(), -2}, .entropy = {1, 1, 1, 1}}};
  const Method grpo = {.sign = 0};
  for (const Divergence divergence : {Divergence::kJsd, Divergence::kKl}) {
    Method method = antisd();
    method.divergence = divergence;  // u itself is infinite at one token
    for (const double advantage : {2.474867, -.353552, 0.0}) {
      const auto plain = token_losses(shaped(grpo, {advantage}, {}, kOpen), 0, {student}, 7);
      const auto closed =
          token_losses(shaped(method, {advantage}, teacher, kClosed), 0, {student}, 7);
      EXPECT_EQ(closed.gradient, plain.gradient);
      EXPECT_EQ(closed.loss, plain.loss);
      EXPECT_EQ(closed.advantages.u.size(), 4u);  // still recorded
      EXPECT_TRUE(plain.advantages.u.empty());
    }
  }
}

TEST(TokenLosses, TheMeanIsOverTheTokensOfTheWholeBatch) {
  // Two responses of 2 and 6 tokens with losses 1 and 0.
  const Method grpo = {.sign = 0};
  const Shaped shaping = shaped(grpo, {-1.0, 0.0}, {}, kOpen);
  const Floats two(2, -1.0F), six(6, -1.0F);
  NamedSums sums;
  add_sums(sums, token_losses(shaping, 0, {two}, 8));
  add_sums(sums, token_losses(shaping, 1, {six}, 8));
  EXPECT_EQ(sums.mean("loss"), .25);
  EXPECT_THAT(token_losses(shaping, 0, {two}, 8).gradient, Each(1.0 / 8));
}

TEST(TokenLosses, MicroBatchesDoNotChangeTheMean) {
  std::vector<TokenScores> teacher;
  std::vector<Floats> student;
  Advantages advantages;
  std::int64_t tokens = 0;
  for (int r = 0; r < 8; ++r) {
    Floats s, t;
    for (int i = 0; i < 3 + 5 * r; ++i) {
      s.push_back(-std::abs(std::sin(static_cast<float>(r + 7 * i))));
      t.push_back(-std::abs(std::cos(static_cast<float>(3 * r + i))));
    }
    tokens += std::ssize(s);
    advantages.emplace_back(r % 3 - 1.0);
    teacher.push_back({.logp = t, .entropy = t});
    student.push_back(s);
  }
  const Shaped shaping = shaped(antisd(), advantages, teacher, kOpen);
  const auto mean_with = [&](std::size_t micro_batch) {
    NamedSums step;
    for (std::size_t first = 0; first < 8; first += micro_batch) {
      NamedSums part;
      for (std::size_t r = first; r < first + micro_batch; ++r)
        add_sums(part, token_losses(shaping, r, {student[r]}, tokens));
      step.add(part);
    }
    return step.mean("loss");
  };
  EXPECT_NEAR(mean_with(1), mean_with(8), 1e-12);
  EXPECT_NEAR(mean_with(2), mean_with(8), 1e-12);
  EXPECT_NE(mean_with(8), 0);
}

// Scores are slices of buffers over whole sequences; only the response's part is read.
TEST(TokenLosses, WhatLiesAroundAResponseIsNotRead) {
  const float nan = std::nanf("");
  const Floats buffer = {nan, nan, -1, -2, nan};
  const StudentTokens student = {.logp = std::span(buffer).subspan(2, 2)};
  const auto losses = token_losses(
      shaped(antisd(), {1.0}, {{.logp = {-1, -1}, .entropy = {1, 1}}}, kOpen), 0, student, 2);
  for (const double value : losses.loss)
    EXPECT_TRUE(std::isfinite(value));
  EXPECT_EQ(losses.loss.size(), 2u);
}

TEST(TokenLosses, LaterUpdatesCompareWithTheOldPolicy) {
  const Floats old_logp = {-2, -2, -2}, now = {-2 + .4F, -2, -2 - .1F};
  const std::vector<TokenScores> teacher = {{.logp = {-1, -1, -1}, .entropy = {1, 1, 1}}};
  const Shaped shaping = shaped(antisd(), {1.0}, teacher, kOpen);
  const TokenLosses losses = token_losses(shaping, 0, {.logp = now, .old_logp = old_logp}, 1);
  const double a = 1 - .5 * phi(1);  // u by the old policy: the advantage is fixed for the step
  EXPECT_THAT(losses.advantages.advantage, Each(::testing::DoubleNear(a, 1e-12)));
  EXPECT_NEAR(losses.loss[0], -a * 1.2, 1e-6);
  EXPECT_EQ(losses.gradient[0], 0);
  EXPECT_NEAR(losses.loss[2], -a * std::exp(-.1), 1e-6);
  EXPECT_EQ(losses.clipped, 1);
  EXPECT_NEAR(losses.log_ratio, .3, 1e-6);
  NamedSums sums;
  add_sums(sums, losses);
  EXPECT_NEAR(sums.mean("log_ratio"), .1, 1e-6);
  EXPECT_NEAR(sums.mean("clipped"), 1.0 / 3, 1e-12);
}

TEST(TokenLosses, ThePullOfTheReferenceIsAdded) {
  Method method = {.sign = 0};
  method.loss.kl_coef = .1;
  const Floats now = {-1}, reference = {-1.5F};
  const auto losses =
      token_losses(shaped(method, {0.0}, {}, kOpen), 0, {.logp = now, .reference = reference}, 2);
  EXPECT_NEAR(losses.loss[0], .1 * (std::exp(-.5) + .5 - 1), 1e-9);
  EXPECT_NEAR(losses.gradient[0], .1 * (1 - std::exp(-.5)) / 2, 1e-9);
  EXPECT_THROW(token_losses(shaped(method, {0.0}, {}, kOpen), 0, {.logp = now}, 2), CheckFailure);
}

TEST(TokenLosses, ShiftedTeacherScoresAreNotTaken) {
  const Shaped shaping = shaped(antisd(), {1.0}, {{.logp = {-1}, .entropy = {1}}}, kOpen);
  EXPECT_THROW(token_losses(shaping, 0, {Floats{-1, -2}}, 2), CheckFailure);
  const Shaped failed = shaped({.sign = 0}, {std::nullopt}, {}, kOpen);
  EXPECT_THROW(token_losses(failed, 0, {Floats{-1}}, 1), CheckFailure);
}

Method released() {
  RunConfig config;
  config.options().assign("method.preset=released");
  config.resolve();
  return resolve_method(config.method, config.loss);
}

TEST(Released, LambdaFollowsThePerplexity) {
  const double m = 1.2;
  const GateReading gate = {.position = GatePosition::kOpen, .h_warm = m, .tau = .93 * m};
  EXPECT_NEAR(response_lambda(released(), gate, m), .0145141, 1e-7);
  EXPECT_EQ(response_lambda(released(), gate, 3.01), 0);
  EXPECT_EQ(response_lambda(released(), gate, 1.0), 0);  // below tau
  EXPECT_NEAR(response_lambda(released(), gate, 3), .2 * std::log(3 / (.93 * m)), 1e-12);
  GateReading closed = gate;
  closed.position = GatePosition::kClosedLow;
  EXPECT_EQ(response_lambda(released(), closed, m), 0);
}

TEST(Released, TheTermIsCleanedAndStandardised) {
  Moments warmup;
  warmup.add(-1);
  warmup.add(1);  // sigma = 1: |u| > 2 is an outlier
  const Floats student = {-3, -3, -3, -3};
  const Floats teacher = {-2, -4, -3, -.5F};  // u = 1, -1, 0, 2.5
  const GateReading gate = {.position = GatePosition::kOpen, .h_warm = 12, .tau = 9};
  Method method = released();
  method.gate.max_perplexity = 0;
  const Shaped shaping =
      shaped(method, {.25}, {{.logp = teacher, .entropy = Floats(4, 1.0F)}}, gate, warmup);
  const TokenAdvantages tokens = token_advantages(shaping, 0, student);
  EXPECT_THAT(tokens.u, ElementsAre(1, -1, 0, 2.5));
  EXPECT_THAT(tokens.phi, ElementsAre(phi(1), phi(-1), 0, 0));

  const double mean = -(phi(1) + phi(-1)) / 4;
  double squares = 0;
  for (const double term : {-phi(1), -phi(-1), 0.0, 0.0})
    squares += (term - mean) * (term - mean);
  const double deviation = std::sqrt(squares / 3);
  ASSERT_GT(tokens.lambda, 0);
  EXPECT_NEAR(tokens.advantage[0], .25 + tokens.lambda * (-phi(1) - mean) / (deviation + 1e-6),
              1e-12);
  EXPECT_NEAR(tokens.advantage[2], .25 + tokens.lambda * (0 - mean) / (deviation + 1e-6), 1e-12);
}

TEST(Released, BoundsHold) {
  // One outlier among many neutral tokens: u is clamped to 5, its standardised term to -5.
  Method method = antisd();
  method.signal = released().signal;
  Floats student(100, -9.0F), teacher(100, -9.0F);
  teacher[40] = -1;
  const TokenAdvantages tokens = token_advantages(
      shaped(method, {0.0}, {{.logp = teacher, .entropy = teacher}}, kOpen), 0, student);
  EXPECT_EQ(tokens.phi[40], phi(5));
  EXPECT_EQ(tokens.advantage[40], .5 * -5);
}

TEST(Released, VeryLongResponsesGetNoTerm) {
  Method method = antisd();
  method.signal.max_response_tokens = 3;
  const std::vector<TokenScores> teacher = {{.logp = {-1, -1}, .entropy = {1, 1}},
                                            {.logp = {-1, -1, -1}, .entropy = {1, 1, 1}}};
  const Shaped shaping = shaped(method, {1.0, 1.0}, teacher, kOpen);
  EXPECT_NE(token_advantages(shaping, 0, Floats{-2, -2}).advantage[0], 1);
  EXPECT_THAT(token_advantages(shaping, 1, Floats{-2, -2, -2}).advantage, Each(1));
}

TEST(Released, ASingleTokenHasNothingToStandardise) {
  Method method = antisd();
  method.signal.standardise = true;
  const Shaped shaping = shaped(method, {.5}, {{.logp = {-1}, .entropy = {1}}}, kOpen);
  EXPECT_THAT(token_advantages(shaping, 0, Floats{-2}).advantage, ElementsAre(.5));
  EXPECT_TRUE(token_advantages(shaped(method, {.5}, {{}}, kOpen), 0, Floats{}).advantage.empty());
}

TEST(UpdateSums, SayHowLargeTheTermIs) {
  const Floats student = {-1, -1};
  const auto losses = token_losses(
      shaped(antisd(), {-2.0}, {{.logp = {-.5F, -2}, .entropy = {1, 1}}}, kOpen), 0, {student}, 2);
  NamedSums sums;
  add_sums(sums, losses, Floats{.5F, 1.5F});
  EXPECT_EQ(sums.mean("entropy"), 1);
  EXPECT_NEAR(sums.at("term").sum / sums.at("group_advantage").sum, .5 * (phi(.5) - phi(-1)) / 4,
              1e-12);
  EXPECT_EQ(sums.at("u").negative_fraction(), .5);
  EXPECT_EQ(sums.at("u").min, -1);
  EXPECT_EQ(sums.at("u").max, .5);
  EXPECT_NEAR(sums.at("u").deviation(), .75, 1e-12);
}

// A = .5; token 7 is a bonus word; e^-3 = .0498 is below the penalty's .05.
TEST(FixedTerms, AddToTheTokensTheyName) {
  MethodConfig config;
  config.name = "grpo";
  config.bonus = {.words = {"Wait"}, .size = .25};
  config.penalty = {.below = .05, .size = .125};
  Shaping shaping{.method = resolve_method(config, {})};
  shaping.bonus_ids = {7};
  Response response;
  response.ids = {7, 3, 7, 1};
  response.group_advantage = .5;
  const Floats student = {-1, -3, -4, -2.9F};
  EXPECT_EQ(antisd::token_advantages(shaping, response, student).advantage,
            (std::vector<double>{.75, .375, .625, .5}));
}

}  // namespace
}  // namespace antisd::inline algo
