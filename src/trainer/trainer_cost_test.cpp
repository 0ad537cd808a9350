// The passes of a step, counted by the tensor library and not by the trainer: each pass over
// responses, with gradients or without, selects their rows of the hidden states once.
#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include "trainer/testing.h"

namespace antisd::inline trainer {
namespace {

using testing::SmallTraining;

struct Counts {
  std::int64_t passes = 0, tokens = 0;              // with gradients
  std::int64_t plain_passes = 0, plain_tokens = 0;  // without
};
Counts* counting = nullptr;

constexpr std::int64_t kWidth = 16;  // of the small model

std::unique_ptr<at::ObserverContext> count_rows(const at::RecordFunction& function) {
  if (counting == nullptr || std::string_view(function.name()) != "aten::index_select")
    return nullptr;
  const at::Tensor from = function.inputs()[0].toTensor();
  const bool is_weight = from.requires_grad() && from.is_leaf();  // the embedding, looked up
  if (from.dim() != 2 || from.size(1) != kWidth || is_weight) return nullptr;
  const std::int64_t tokens = function.inputs()[2].toTensor().numel();
  const bool gradients = at::GradMode::is_enabled();
  ++(gradients ? counting->passes : counting->plain_passes);
  (gradients ? counting->tokens : counting->plain_tokens) += tokens;
  return nullptr;
}

template <typename Work>
Counts count(Work&& work) {
  Counts counts;
  counting = &counts;
  const at::CallbackHandle handle = at::addGlobalCallback(
      at::RecordFunctionCallback(count_rows).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  work();
  at::removeCallback(handle);
  counting = nullptr;
  return counts;
}

struct Step {
  Counts counts;
  std::int64_t responses = 0;  // tokens in the dump
};

Step one_step(std::vector<std::string> settings) {
  settings.insert(settings.end(), {"train.steps=1", "train.micro_batch_tokens=40"});
  SmallTraining training(settings);
  Step step;
  step.counts = count([&] { training.run(); });
  for (const Json& row : training.rows("rollouts/step-000001.jsonl"))
    step.responses += std::ssize(row["response_ids"]);
  return step;
}

Counts sampling_alone() {
  SmallTraining training;
  GroupSampler sampler(training.config.rollout, 0, {1}, training.renderer->tokenizer());
  const PromptBatch prompts =
      training.renderer->batch(0, training.problems, training.state->prompts.next(3));
  return count([&] {
    sampler.generate(training.state->model, prompts, [](std::size_t, const ResponseGroup&) {});
  });
}

TEST(StepCost, GrpoScoresNothingBeforeItsUpdate) {
  const Step grpo = one_step({"method.name=grpo"});
  EXPECT_GT(grpo.counts.passes, 1);  // micro-batches
  EXPECT_EQ(grpo.counts.tokens, grpo.responses);
  EXPECT_EQ(grpo.counts.plain_tokens, sampling_alone().plain_tokens);
}

TEST(StepCost, AntisdAddsTheTeachersPassAlone) {
  const Step grpo = one_step({"method.name=grpo"}), antisd = one_step({"method.name=antisd"});
  EXPECT_EQ(antisd.responses, grpo.responses);  // the same ones
  EXPECT_EQ(antisd.counts.tokens, grpo.counts.tokens);
  EXPECT_EQ(antisd.counts.passes, grpo.counts.passes);
  EXPECT_EQ(antisd.counts.plain_tokens - grpo.counts.plain_tokens, antisd.responses);
}

TEST(StepCost, SdpoRunsItsTeacherOnce) {
  const Step grpo = one_step({"method.name=grpo"}), sdpo = one_step({"method.name=sdpo"});
  EXPECT_EQ(sdpo.responses, grpo.responses);  // the same ones
  EXPECT_EQ(sdpo.counts.tokens, grpo.counts.tokens);
  EXPECT_EQ(sdpo.counts.plain_tokens - grpo.counts.plain_tokens, sdpo.responses);
}

TEST(StepCost, OnlyWhoNeedsTheStudentsScoresPaysForThem) {
  const Step antisd = one_step({"method.name=antisd"});
  for (const char* setting : {"method.name=antisd-student-gate", "train.minibatches=2"}) {
    const Step more = one_step({setting});
    EXPECT_EQ(more.counts.plain_tokens - antisd.counts.plain_tokens, more.responses) << setting;
  }
}

// Where a step has one update, its own forward pass is the old policy. A mask has to be known
// before.
TEST(StepCost, TruncatedWeightsCostNothing) {
  const Step grpo = one_step({"method.name=grpo"});
  const Step tis = one_step({"method.name=grpo", "loss.rollout_correction=tis"});
  EXPECT_EQ(tis.counts.tokens, grpo.counts.tokens);
  EXPECT_EQ(tis.counts.plain_tokens, grpo.counts.plain_tokens);
  const Step mask = one_step({"method.name=grpo", "loss.rollout_correction=mask"});
  EXPECT_EQ(mask.counts.plain_tokens - grpo.counts.plain_tokens, mask.responses);
}

}  // namespace
}  // namespace antisd::inline trainer
