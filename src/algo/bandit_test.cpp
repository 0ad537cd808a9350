// A task with a known answer: one-token responses, of which one token is right. Every method that
// should learn it does, through the same calls as the trainer's loop, so signs and scales are right
// for gradient descent on the loss.
#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "algo/gate_signal.h"
#include "algo/shaping.h"
#include "algo/token_divergence.h"
#include "core/rng.h"

namespace antisd::inline algo {
namespace {

constexpr std::size_t kTokens = 5, kRight = 3, kGroup = 8;
using Values = std::vector<double>;

Values log_softmax(const Values& logits) {
  double sum = 0;
  for (const double z : logits)
    sum += std::exp(z);
  Values logp;
  for (const double z : logits)
    logp.push_back(z - std::log(sum));
  return logp;
}

double entropy(const Values& logp) {
  double sum = 0;
  for (const double value : logp)
    sum -= std::exp(value) * value;
  return sum;
}

TokenScores score(const Values& logp, std::size_t token) {
  return {.logp = {static_cast<float>(logp[token])},
          .entropy = {static_cast<float>(entropy(logp))}};
}

// The same model, given which token is right.
Values teacher_logp(Values logits) {
  logits[kRight] += 1;
  return log_softmax(logits);
}

ResponseBatch sample(const Values& logp, std::uint32_t step) {
  const CounterRng rng(1, RandomStream::kSampling);
  ResponseBatch batch;
  ResponseGroup& group = batch.groups.emplace_back();
  for (std::uint32_t i = 0; i < kGroup; ++i) {
    double left = rng.uniform({.step = step, .sample = i});
    std::size_t token = 0;
    while (token + 1 < kTokens && (left -= std::exp(logp[token])) >= 0)
      ++token;
    Response response;
    response.ids = {static_cast<TokenId>(token)};
    response.verdict.reward = token == kRight ? 1.0 : 0.0;
    group.responses.push_back(std::move(response));
  }
  return batch;
}

// The probability of the right token after `steps` updates, from 0.2.
double train(const std::string& setting, std::uint32_t steps,
             const std::string& another = "train.seed=0") {
  RunConfig config;
  config.options().assign(setting);
  config.options().assign(another);
  config.resolve();
  const Method method = resolve_method(config.method, config.loss);
  EntropyGate gate(method.gate);
  Values logits(kTokens, 0);
  for (std::uint32_t step = 0; step < steps; ++step) {
    const Values logp = log_softmax(logits), told = teacher_logp(logits);
    ResponseBatch batch = sample(logp, step);  // y, R
    for (std::size_t r = 0; r < batch.size(); ++r) {
      batch[r].teacher = score(told, batch[r].ids[0]);  // t, H_T
      batch[r].student = score(logp, batch[r].ids[0]);  // s, H_S
    }
    const GateReading g = gate.observe(
        gate_statistic(method.gate, gate_values(method, scores_of(batch, &Response::teacher),
                                                scores_of(batch, &Response::student))));
    set_advantages(batch, config.advantage);
    const Shaping shaping = make_shaping(method, g, {}, batch);
    for (std::size_t r = 0; r < batch.size(); ++r) {
      Values by_logp(kTokens, 0);
      if (method.distils) {
        by_logp = sdpo_loss(logp, told, method.distillation.alpha).gradient;
        for (double& value : by_logp)
          value /= kGroup;
      } else {
        by_logp[batch[r].ids[0]] =
            token_losses(shaping, batch[r], {.logp = batch[r].student.logp}, {kGroup, kGroup})
                .gradient[0];
      }
      double sum = 0;
      for (const double value : by_logp)
        sum += value;
      for (std::size_t v = 0; v < kTokens; ++v)
        logits[v] -= .3 * (by_logp[v] - std::exp(logp[v]) * sum);
    }
  }
  return std::exp(log_softmax(logits)[kRight]);
}

TEST(Bandit, EveryMethodThatShouldLearnsIt) {
  for (const char* name :
       {"grpo", "sd", "opd", "antisd", "antisd-reverse-kl", "antisd-no-gate", "antisd-close-0.90",
        "antisd-multiplicative", "antisd-student-gate", "antisd-two-sided"})
    EXPECT_GT(train(fmt::format("method.name={}", name), 300), .9) << name;
  EXPECT_GT(train("method.name=sdpo", 1000), .9);  // its loss is a few hundredths of a nat
}

TEST(Bandit, EveryPresetLearnsIt) {
  for (const char* preset : {"paper", "dapo", "gspo", "cispo", "rloo"})
    EXPECT_GT(train(fmt::format("method.preset={}", preset), 300), .9) << preset;
  // Its steps are as small as the constant is large: 32,768 tokens for responses of one.
  EXPECT_GT(train("method.preset=dr-grpo", 300, "loss.norm_tokens=1"), .9);
}

// With only the term, the update goes towards the tokens that the context makes likely, or away.
TEST(Bandit, AscentHoldsBackWhatDescentHurries) {
  const double grpo = train("method.name=grpo", 25);
  EXPECT_GT(train("method.name=sd", 25), grpo);
  EXPECT_LT(train("method.name=antisd-no-gate", 25), grpo);
}

}  // namespace
}  // namespace antisd::inline algo
