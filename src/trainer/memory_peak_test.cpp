// The plan against what passes allocate, counted by the tensor library.
#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>

#include "dist/in_process.h"
#include "model/weights.h"
#include "trainer/gradient_pass.h"
#include "trainer/memory_plan.h"

namespace antisd::inline trainer {
namespace {

// The most bytes of tensors at a time since it was made, beside those that were there.
class PeakCounter : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t,
                         c10::Device) override {
    now_ += bytes;
    peak = std::max(peak, now_);
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::int64_t peak = 0;

 private:
  std::int64_t now_ = 0;
};

double peak_of(const std::function<void()>& work) {
  const auto counter = std::make_shared<PeakCounter>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
  work();
  return static_cast<double>(counter->peak);
}

class SumObjective : public Objective {
 public:
  ObjectiveNeeds needs() const override { return {}; }
  Derivative differentiate(const PassView&) override {
    Derivative derivative;
    derivative.by_logp = {1.0};
    return derivative;
  }
  void account(std::span<const TargetSequence>, const MicroBatchResult&, MeanOver) override {}
};

class MemoryPeak : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr int kSequences = 8, kLength = 128;

  MemoryPeak() : model_(shape(GetParam()), at::kCPU, at::kFloat) {
    at::set_num_threads(1);
    initialise_randomly(model_, 1);
    config_.rollout.prompts_per_step = 1;
    config_.rollout.group_size = kSequences;
    config_.rollout.max_sequence_tokens = kLength;
    config_.train.micro_batch_tokens = kSequences * kLength;
    for (int s = 0; s < kSequences; ++s) {
      const std::vector<std::int32_t> prompt = {s};
      std::vector<std::int32_t> response;
      for (int i = 1; i < kLength; ++i)
        response.push_back((s * 31 + i * 7) % 500);
      sequences_.push_back(continuation(prompt, response));
    }
  }

  static ModelShape shape(bool sparse) {
    Json config = {{"model_type", sparse ? "qwen3_moe" : "qwen3"},
                   {"vocab_size", 512},
                   {"hidden_size", 128},
                   {"num_hidden_layers", 6},
                   {"num_attention_heads", 8},
                   {"num_key_value_heads", 4},
                   {"head_dim", 32},
                   {"intermediate_size", 384},
                   {"tie_word_embeddings", true},
                   {"rope_theta", 10'000},
                   {"max_position_embeddings", 256}};
    if (sparse) {
      config.update({{"num_experts", 8},
                     {"num_experts_per_tok", 2},
                     {"moe_intermediate_size", 64},
                     {"norm_topk_prob", true}});
    }
    return parse_model_shape(config, "peak");
  }

  MemoryPlan plan(std::size_t kept) const {
    return plan_memory_keeping(kept, model_.shape(), config_,
                               resolve_method(config_.method, config_.loss), at::kCPU, at::kFloat);
  }

  CausalLm model_;
  RunConfig config_;
  std::vector<TargetSequence> sequences_;
};

TEST_P(MemoryPeak, OfAnUpdateIsThePlans) {
  const auto processes = alone();
  AdamW optimizer(model_, {}, *processes);
  for (const std::size_t kept : {0, 2, 5, 6}) {
    GradientPass pass(model_, optimizer,
                      {.micro_batch_tokens = kSequences * kLength, .kept_layers = kept});
    SumObjective objective;
    const double measured = peak_of(
        [&] { pass.add_gradients({.sequences = sequences_}, mean_over(sequences_), objective); });
    optimizer.drop_gradients();
    const double planned = plan(kept).total(MemoryTime::kUpdate);
    EXPECT_NEAR(planned / measured, 1, 0.05) << kept << " layers kept";
  }
}

INSTANTIATE_TEST_SUITE_P(Models, MemoryPeak, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Experts" : "Dense"; });

}  // namespace
}  // namespace antisd::inline trainer
