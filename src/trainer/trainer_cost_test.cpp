// What a step computes, counted by the tensor library and not by the trainer: every token that
// enters the model is looked up in the embedding once.
#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include "trainer/testing.h"

namespace antisd {
namespace {

using testing::SmallTraining;

struct Counts {
  std::int64_t passes = 0, tokens = 0;              // with gradients
  std::int64_t plain_passes = 0, plain_tokens = 0;  // without
};
Counts* counting = nullptr;

std::unique_ptr<at::ObserverContext> count_lookup(const at::RecordFunction& function) {
  if (counting == nullptr || std::string_view(function.name()) != "aten::embedding") return nullptr;
  const std::int64_t tokens = function.inputs()[1].toTensor().numel();
  const bool gradients = at::GradMode::is_enabled();
  ++(gradients ? counting->passes : counting->plain_passes);
  (gradients ? counting->tokens : counting->plain_tokens) += tokens;
  return nullptr;
}

template <typename Work>
Counts count(Work&& work) {
  Counts counts;
  counting = &counts;
  const at::CallbackHandle handle = at::addGlobalCallback(at::RecordFunctionCallback(count_lookup)
                                                              .needsInputs(true)
                                                              .scopes({at::RecordScope::FUNCTION}));
  work();
  at::removeCallback(handle);
  counting = nullptr;
  return counts;
}

struct Step {
  Counts counts;
  std::int64_t responses = 0, sequences = 0, teacher_sequences = 0;  // tokens of the dump
};

Step one_step(std::vector<std::string> settings) {
  settings.insert(settings.end(), {"train.steps=1", "train.micro_batch_tokens=40"});
  SmallTraining training(settings);
  Step step;
  step.counts = count([&] { training.run(); });
  for (const Json& row : training.rows("rollouts/step-000001.jsonl")) {
    const std::int64_t response = std::ssize(row["response_ids"]);
    step.responses += response;
    step.sequences += response + std::ssize(row["prompt_ids"]);
    step.teacher_sequences += response + std::ssize(row["teacher_prompt_ids"]);
  }
  return step;
}

Counts sampling_alone() {
  SmallTraining training;
  GroupSampler sampler(training.config.rollout, 0, {1}, training.renderer->tokenizer());
  const PromptBatch prompts =
      training.renderer->batch(0, training.problems, training.state->prompts.next(3));
  return count([&] {
    sampler.generate(training.state->model, prompts, [](std::size_t, const RolloutGroup&) {});
  });
}

TEST(StepCost, GrpoScoresNothingBeforeItsUpdate) {
  const Step grpo = one_step({"method.name=grpo"});
  EXPECT_GT(grpo.counts.passes, 1);  // micro-batches
  EXPECT_GE(grpo.counts.tokens, grpo.responses);
  EXPECT_LE(grpo.counts.tokens, grpo.sequences);
  EXPECT_EQ(grpo.counts.plain_tokens, sampling_alone().plain_tokens);
}

TEST(StepCost, AntisdAddsTheTeachersPassAlone) {
  const Step grpo = one_step({"method.name=grpo"}), antisd = one_step({"method.name=antisd"});
  EXPECT_EQ(antisd.sequences, grpo.sequences);  // the same responses
  EXPECT_EQ(antisd.counts.tokens, grpo.counts.tokens);
  EXPECT_EQ(antisd.counts.passes, grpo.counts.passes);
  const std::int64_t added = antisd.counts.plain_tokens - grpo.counts.plain_tokens;
  EXPECT_GE(added, antisd.responses);
  EXPECT_LE(added, antisd.teacher_sequences);
}

TEST(StepCost, OnlyWhoNeedsTheStudentsScoresPaysForThem) {
  const Step antisd = one_step({"method.name=antisd"});
  for (const char* setting : {"method.name=antisd-student-gate", "train.minibatches=2"}) {
    const Step more = one_step({setting});
    EXPECT_GE(more.counts.plain_tokens - antisd.counts.plain_tokens, more.responses) << setting;
  }
}

}  // namespace
}  // namespace antisd
