#include "trainer/memory_plan.h"

#include <gtest/gtest.h>

#include "dist/communicator.h"
#include "inference/kv_pool.h"
#include "optim/adamw.h"

namespace antisd::inline trainer {
namespace {

ModelShape small_shape(bool sparse) {
  Json config = {{"model_type", sparse ? "qwen3_moe" : "qwen3"},
                 {"vocab_size", 96},
                 {"hidden_size", 32},
                 {"num_hidden_layers", 3},
                 {"num_attention_heads", 4},
                 {"num_key_value_heads", 2},
                 {"head_dim", 8},
                 {"intermediate_size", 48},
                 {"tie_word_embeddings", !sparse},
                 {"rope_theta", 10'000},
                 {"max_position_embeddings", 256}};
  if (sparse) {
    config.update({{"num_experts", 4},
                   {"num_experts_per_tok", 2},
                   {"moe_intermediate_size", 16},
                   {"norm_topk_prob", true}});
  }
  return parse_model_shape(config, "small");
}

double part(const MemoryPlan& plan, const std::string& name) {
  for (const MemoryPart& p : plan.parts)
    if (p.name == name) return p.bytes;
  return 0;
}

TEST(MemoryPlan, WhatStaysIsCountedToTheByte) {
  for (const bool sparse : {false, true}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      CausalLm model(small_shape(sparse), at::kCPU, dtype);
      const auto processes = alone();
      const AdamW optimizer(model, {}, *processes);
      double weights = 0, masters = 0, moments = 0;
      for (const Parameter& parameter : model.parameters()) {
        weights += static_cast<double>(parameter.value.nbytes());
        if (parameter.master.defined()) masters += static_cast<double>(parameter.master.nbytes());
        moments +=
            static_cast<double>(parameter.first_moment.nbytes() + parameter.second_moment.nbytes());
      }
      RunConfig config;
      const Method method = resolve_method(config.method, config.loss);
      const MemoryPlan plan = plan_memory(model.shape(), config, method, at::kCPU, dtype);
      EXPECT_EQ(part(plan, "weights"), weights);
      EXPECT_EQ(part(plan, "masters"), masters);
      EXPECT_EQ(part(plan, "moments"), moments);
      EXPECT_EQ(part(plan, "gradients"), weights);
      EXPECT_EQ(part(plan, "reference"), 0);
      // At most 256 responses of 256 tokens; a page holds kPageTokens of them.
      EXPECT_EQ(part(plan, "keys and values"),
                256.0 * 256 * static_cast<double>(KvPool::page_bytes(model)) / kPageTokens);
    }
  }
}

TEST(MemoryPlan, TheConfigurationDecides) {
  const auto plan = [](std::initializer_list<const char*> lines) {
    RunConfig config;
    for (const char* line : lines)
      config.options().assign(line);
    config.resolve();
    return plan_memory(small_shape(false), config, resolve_method(config.method, config.loss),
                       at::kCPU, at::kBFloat16);
  };
  const MemoryPlan base = plan({});
  EXPECT_GT(part(plan({"loss.kl_coef=0.1"}), "reference"), 0);
  EXPECT_EQ(part(plan({"method.name=sdpo", "method.sdpo.teacher_ema=0.05"}), "teacher"),
            3 * part(base, "weights"));
  EXPECT_EQ(part(plan({"method.name=sdpo"}), "teacher"), 0);
  // Twice the tokens at a time keep twice the values.
  EXPECT_EQ(part(plan({"train.micro_batch_tokens=65536"}), "activations"),
            2 * part(base, "activations"));
  EXPECT_GT(part(plan({"model.gradient_checkpointing=false"}), "activations"),
            part(base, "activations"));
  // All responses in one micro-batch: no sums are needed.
  EXPECT_GT(part(base, "gradient sums"), 0);
  EXPECT_EQ(part(plan({"rollout.prompts_per_step=1"}), "gradient sums"), 0);
  EXPECT_GT(base.needed(), base.total(MemoryTime::kAlways));
}

}  // namespace
}  // namespace antisd::inline trainer
