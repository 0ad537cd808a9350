#include "trainer/updater.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "algo/phi.h"
#include "inference/scorer.h"
#include "trainer/testing.h"

namespace antisd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two groups of four responses of different lengths under the small model, with rewards.
class Update : public ::testing::Test {
 protected:
  Update() : model_(make_model()), optimizer_(model_, {}, *processes_) {
    at::set_num_threads(1);
    for (std::uint32_t p = 0; p < 2; ++p) {
      Prompt& prompt = prompts_.prompts.emplace_back();
      prompt.id = fmt::format("p{}", p);
      prompt.index = p;
      for (int i = 0; i < 18; ++i)  // long enough to be shared
        prompt.ids.push_back(static_cast<TokenId>((3 * i + 5 * p) % 20));
      RolloutGroup& group = batch_.groups.emplace_back();
      for (int g = 0; g < 4; ++g) {
        Rollout& rollout = group.rollouts.emplace_back();
        for (int i = 0; i < 3 + 2 * g; ++i)
          rollout.response_ids.push_back(static_cast<TokenId>((7 * i + g + 2) % 20));
        rollout.sampling_logp.assign(rollout.response_ids.size(), -3.f);
        rollout.grade.reward = g == 1 || g == 3 ? 1.0 : 0.0;
      }
    }
  }

  CausalLm make_model() {
    return load_model(testing::make_small_model(folder_ / "model"), at::kCPU, at::kFloat);
  }

  // Teacher scores under another prompt.
  std::vector<TokenScores> teacher(bool same_prompt) const {
    std::vector<ScoreRequest> requests;
    for (std::size_t r = 0; r < batch_.size(); ++r) {
      std::vector<TokenId> prompt = prompts_.prompts[r / 4].ids;
      if (!same_prompt) prompt.insert(prompt.begin(), {4, 9, 13});
      requests.push_back({prompt, batch_[r].response_ids});
    }
    return score(model_, requests);
  }

  Shaping shaping(const std::string& name, bool open, bool same_prompt = false) const {
    MethodConfig config;
    config.name = name;
    const Method method = resolve_method(config, {});
    GateReading gate{.statistic = 1, .h_warm = 1, .tau = 0.93};
    gate.position = open ? GatePosition::kOpen : GatePosition::kClosedLow;
    return shape(method, group_advantages(batch_),
                 method.needs_teacher() ? teacher(same_prompt) : std::vector<TokenScores>(), gate);
  }

  // The gradients of all parameters, laid end to end.
  at::Tensor gradients(const Shaping& shaping, Updater::Options options = {},
                       UpdateResult* seen = nullptr, std::span<const TokenScores> old = {}) {
    const Updater updater(options, *processes_);
    UpdateResult result;
    result.student.resize(batch_.size());
    result.token_advantage.resize(batch_.size());
    updater.add_gradients(
        model_, optimizer_,
        {.prompts = prompts_, .batch = batch_, .shaping = shaping, .old_scores = old},
        cut_mini_batches(batch_, 1)[0], count_loss_tokens(batch_), result);
    std::vector<at::Tensor> parts;
    for (const Parameter& parameter : model_.parameters())
      parts.push_back(parameter.value.grad().detach().clone().flatten());
    optimizer_.drop_gradients();
    if (seen != nullptr) *seen = std::move(result);
    return at::cat(parts);
  }

  testing::TemporaryFolder folder_;
  std::unique_ptr<Communicator> processes_ = alone();
  CausalLm model_;
  AdamW optimizer_;
  PromptBatch prompts_;
  RolloutBatch batch_;
};

// method.md, acceptance 6.
TEST_F(Update, WithLambdaZeroIsGrpoBitForBit) {
  const at::Tensor grpo = gradients(shaping("grpo", true));
  EXPECT_TRUE(at::equal(gradients(shaping("antisd", /*open=*/false)), grpo));
  EXPECT_FALSE(at::equal(gradients(shaping("antisd", /*open=*/true)), grpo));
}

// method.md, acceptance 6: s and t go through the same kernels.
TEST_F(Update, TeacherWithTheStudentsPromptAgreesWithIt) {
  UpdateResult seen;
  gradients(shaping("antisd", true, /*same_prompt=*/true), {}, &seen);
  EXPECT_EQ(seen.totals.u.count, count_loss_tokens(batch_));
  EXPECT_LE(std::max(std::abs(seen.totals.u.min), std::abs(seen.totals.u.max)), 1e-5);
  gradients(shaping("antisd", true, /*same_prompt=*/false), {}, &seen);
  EXPECT_GT(seen.totals.u.max, 1e-3);
}

// method.md, acceptance 12.
TEST_F(Update, MicroBatchesChangeTheGradientByRoundingAlone) {
  const Shaping antisd = shaping("antisd", true);
  UpdateResult whole, parts;
  const at::Tensor one = gradients(antisd, {}, &whole);
  EXPECT_EQ(whole.micro_batches, 1);
  EXPECT_EQ(whole.tokens, 2 * (18 + 3 + 5 + 7 + 9));  // a shared prompt counts once
  for (const std::int64_t tokens : {1, 40, 60}) {
    const at::Tensor cut = gradients(antisd, {.micro_batch_tokens = tokens}, &parts);
    EXPECT_GT(parts.micro_batches, 1);
    EXPECT_LE((cut - one).norm().item<double>(), 1e-6 * one.norm().item<double>()) << tokens;
    EXPECT_NEAR(parts.totals.mean_loss(), whole.totals.mean_loss(), 1e-6);
  }
  const at::Tensor plain = gradients(antisd, {.gradient_checkpointing = false});
  EXPECT_LE((plain - one).norm().item<double>(), 1e-6 * one.norm().item<double>());
}

// The gradient of -mean(A logp) written with plain tensor operations, one sequence at a time.
TEST_F(Update, GradientIsThatOfTheWeightedLogProbabilities) {
  const Shaping antisd = shaping("antisd", true);
  UpdateResult seen;
  const at::Tensor ours = gradients(antisd, {}, &seen);
  const std::vector<TokenScores> t = teacher(false);
  const auto tokens = static_cast<double>(count_loss_tokens(batch_));
  at::Tensor loss = at::zeros({});
  for (std::size_t r = 0; r < batch_.size(); ++r) {
    std::vector<TokenId> ids = prompts_.prompts[r / 4].ids;
    const std::size_t prompt = ids.size();
    ids.insert(ids.end(), batch_[r].response_ids.begin(), batch_[r].response_ids.end());
    const std::vector<std::vector<TokenId>> alone = {ids};
    const at::Tensor logp = at::linear(model_.hidden_states(pack(alone, at::kCPU), Pass::kTraining),
                                       model_.head().weight)
                                .log_softmax(-1);
    const double group = *antisd.advantages[r];
    for (std::size_t i = 0; i < batch_[r].response_ids.size(); ++i) {
      const at::Tensor s = logp[static_cast<std::int64_t>(prompt + i) - 1][ids[prompt + i]];
      const double u = t[r].logp[i] - s.item<double>();
      const double advantage = group - 0.5 * (std::log1p(std::exp(u)) - std::log(2.0)) / 2;
      EXPECT_NEAR(seen.token_advantage[r][i], advantage, 1e-5);
      loss = loss - advantage * s / tokens;
    }
  }
  loss.backward();
  std::vector<at::Tensor> parts;
  for (const Parameter& parameter : model_.parameters())
    parts.push_back(parameter.value.grad().flatten());
  const at::Tensor expected = at::cat(parts);
  EXPECT_LE((ours - expected).norm().item<double>(), 1e-5 * expected.norm().item<double>());
  EXPECT_NEAR(seen.totals.mean_loss(), -seen.totals.advantage.mean(), 1e-9);  // ratio 1
}

TEST_F(Update, AFailedGradeTakesNoPart) {
  batch_[2].grade.reward.reset();
  UpdateResult seen;
  const at::Tensor without = gradients(shaping("antisd", true), {}, &seen);
  EXPECT_TRUE(seen.student[2].logp.empty());
  EXPECT_EQ(seen.totals.loss.count, count_loss_tokens(batch_));
  batch_[2].response_ids.assign(5, 3);  // whatever it says
  batch_[2].sampling_logp.assign(5, 0);
  EXPECT_TRUE(at::equal(gradients(shaping("antisd", true)), without));
}

TEST_F(Update, SeveralMiniBatchesClipAgainstTheScoresFromBefore) {
  const Shaping grpo = shaping("grpo", true);
  std::vector<ScoreRequest> requests;
  for (std::size_t r = 0; r < batch_.size(); ++r)
    requests.push_back({prompts_.prompts[r / 4].ids, batch_[r].response_ids});
  const std::vector<TokenScores> old = score(model_, requests);
  const Updater updater({.minibatches = 2, .epochs = 2}, *processes_);
  EXPECT_TRUE(updater.needs_old_scores());
  const UpdateResult result =
      updater.step(model_, optimizer_, 0.05,
                   {.prompts = prompts_, .batch = batch_, .shaping = grpo, .old_scores = old});
  EXPECT_EQ(result.updates, 4);
  EXPECT_EQ(optimizer_.steps(), 4);
  EXPECT_GT(result.totals.clip_fraction(), 0);
  EXPECT_NE(result.totals.policy_kl(), 0);
  EXPECT_EQ(result.totals.loss.count, 2 * count_loss_tokens(batch_));
  EXPECT_EQ(result.student[7].logp, old[7].logp);  // what the advantage saw

  // Its first mini-batch is an update of the first group alone, with a mean over its own tokens.
  const auto mini = cut_mini_batches(batch_, 2);
  EXPECT_THAT(mini[0], ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(mini[1], ElementsAre(4, 5, 6, 7));
}

TEST_F(Update, ALossThatIsNoNumberNamesTheResponseAndTouchesNothing) {
  Shaping antisd = shaping("antisd", true);
  antisd.teacher[5].logp[1] = NAN;
  const std::string before = testing::weight_bytes(model_);
  const Updater updater({.micro_batch_tokens = 40}, *processes_);
  try {
    updater.step(model_, optimizer_, 0.1,
                 {.prompts = prompts_, .batch = batch_, .shaping = antisd});
    FAIL() << "no error";
  } catch (const NotFiniteError& error) {
    EXPECT_EQ(error.rollout, 5u);
    EXPECT_THAT(error.message(), HasSubstr("the loss is not finite"));
    EXPECT_EQ(error.student.logp.size(), batch_[5].response_ids.size());
  }
  EXPECT_EQ(testing::weight_bytes(model_), before);
  for (const Parameter& parameter : model_.parameters())
    EXPECT_FALSE(parameter.value.grad().defined());
}

// A loss that is finite with a gradient that is not: a huge advantage overflows in fp32.
TEST_F(Update, AGradientThatIsNoNumberNamesTheResponseAndTouchesNothing) {
  Shaping grpo = shaping("grpo", true);
  grpo.advantages[6] = 1e42;
  const std::string before = testing::weight_bytes(model_);
  const Updater updater({}, *processes_);
  try {
    updater.step(model_, optimizer_, 0.1, {.prompts = prompts_, .batch = batch_, .shaping = grpo});
    FAIL() << "no error";
  } catch (const NotFiniteError& error) {
    EXPECT_EQ(error.rollout, 6u);
    EXPECT_THAT(error.message(), HasSubstr("gradient of"));
  }
  EXPECT_EQ(testing::weight_bytes(model_), before);
  EXPECT_EQ(optimizer_.steps(), 0);
}

// What the penalty adds to the gradient is that of coef (e^d - d - 1), d = reference - s, with
// plain tensor operations.
TEST_F(Update, DistillingTakesTheReferencesPenaltyToo) {
  constexpr double kCoefficient = 0.7;
  std::vector<Context> contexts(batch_.size());
  std::vector<TokenScores> reference(batch_.size());
  for (std::size_t r = 0; r < batch_.size(); ++r) {
    contexts[r].prompt_ids = prompts_.prompts[r / 4].ids;
    contexts[r].prompt_ids.insert(contexts[r].prompt_ids.begin(), {4, 9, 13});
    for (std::size_t i = 0; i < batch_[r].response_ids.size(); ++i)
      reference[r].logp.push_back(-2.5f - 0.1f * static_cast<float>((r + 3 * i) % 7));
  }
  const auto tokens = static_cast<double>(count_loss_tokens(batch_));
  UpdateResult seen;
  const auto gradient = [&](double coefficient) {
    MethodConfig method;
    method.name = "sdpo";
    method.sdpo.top_k = 5;
    LossConfig loss;
    loss.kl_coef = coefficient;
    const Shaping shaping =
        shape(resolve_method(method, loss), group_advantages(batch_), teacher(false), {});
    seen = {};
    seen.student.resize(batch_.size());
    seen.token_advantage.resize(batch_.size());
    Updater({.micro_batch_tokens = 60}, *processes_)
        .add_gradients(model_, optimizer_,
                       {.prompts = prompts_,
                        .batch = batch_,
                        .shaping = shaping,
                        .reference = reference,
                        .contexts = contexts},
                       cut_mini_batches(batch_, 1)[0], count_loss_tokens(batch_), seen);
    std::vector<at::Tensor> parts;
    for (const Parameter& parameter : model_.parameters())
      parts.push_back(parameter.value.grad().detach().clone().flatten());
    optimizer_.drop_gradients();
    return at::cat(parts);
  };
  const at::Tensor plain = gradient(0);
  const double plain_loss = seen.totals.mean_loss();
  const at::Tensor added = gradient(kCoefficient) - plain;
  const double added_loss = seen.totals.mean_loss() - plain_loss;

  at::Tensor penalty = at::zeros({});
  for (std::size_t r = 0; r < batch_.size(); ++r) {
    std::vector<TokenId> ids = prompts_.prompts[r / 4].ids;
    const std::size_t prompt = ids.size();
    ids.insert(ids.end(), batch_[r].response_ids.begin(), batch_[r].response_ids.end());
    const std::vector<std::vector<TokenId>> alone = {ids};
    const at::Tensor logp = at::linear(model_.hidden_states(pack(alone, at::kCPU), Pass::kTraining),
                                       model_.head().weight)
                                .log_softmax(-1);
    for (std::size_t i = 0; i < batch_[r].response_ids.size(); ++i) {
      const at::Tensor d =
          reference[r].logp[i] - logp[static_cast<std::int64_t>(prompt + i) - 1][ids[prompt + i]];
      penalty = penalty + kCoefficient * (d.exp() - d - 1) / tokens;
    }
  }
  EXPECT_NEAR(added_loss, penalty.item<double>(), 1e-5);
  EXPECT_NEAR(kCoefficient * seen.totals.reference_kl(), penalty.item<double>(), 1e-5);
  penalty.backward();
  std::vector<at::Tensor> parts;
  for (const Parameter& parameter : model_.parameters())
    parts.push_back(parameter.value.grad().flatten());
  const at::Tensor expected = at::cat(parts);
  optimizer_.drop_gradients();
  EXPECT_LE((added - expected).norm().item<double>(), 1e-5 * expected.norm().item<double>());
  EXPECT_GT(expected.norm().item<double>(), 1e-3);
}

TEST(MicroBatches, CountASharedPromptOnceAndKeepTheOrder) {
  PromptBatch prompts;
  prompts.prompts.resize(2);
  prompts.prompts[0].ids.assign(10, 0);
  prompts.prompts[1].ids.assign(4, 0);
  RolloutBatch batch;
  for (int g = 0; g < 2; ++g) {
    RolloutGroup& group = batch.groups.emplace_back();
    for (int i = 0; i < 3; ++i)
      group.rollouts.emplace_back().response_ids.assign(5, 0);
  }
  const RolloutNumbers all = {0, 1, 2, 3, 4, 5};
  EXPECT_THAT(cut_micro_batches(prompts, batch, all, 20),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2), ElementsAre(3, 4, 5)));
  EXPECT_THAT(cut_micro_batches(prompts, batch, all, 24),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5)));
  EXPECT_EQ(cut_micro_batches(prompts, batch, all, 1).size(), 6u);
}

}  // namespace
}  // namespace antisd
