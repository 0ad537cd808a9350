#include "trainer/memory_plan.h"

#include <gtest/gtest.h>

#include "dist/in_process.h"
#include "inference/kv_pool.h"
#include "model/adapted_shape.h"
#include "optim/adamw.h"
#include "optim/weight_shards.h"
#include "trainer/slow_teacher.h"

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

// The bytes of a store's allocations.
struct HeldBytes {
  explicit HeldBytes(const ParameterStore& store) {
    const auto add = [](double& sum, const at::Tensor& tensor) {
      if (tensor.defined()) sum += static_cast<double>(tensor.nbytes());
    };
    for (const ParameterBlock& block : store.blocks()) {
      add(weights, block.values);
      add(masters, block.masters);
      add(moments, block.first_moments);
      add(moments, block.second_moments);
    }
  }
  double weights = 0, masters = 0, moments = 0;
};

double part(const MemoryPlan& plan, const std::string& name, MemoryTime when) {
  for (const MemoryPart& p : plan.parts)
    if (p.name == name && p.when == when) return p.bytes;
  return 0;
}

TEST(MemoryPlan, WhatStaysIsCountedToTheByte) {
  for (const bool sparse : {false, true}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      CausalLm model(small_shape(sparse), at::kCPU, dtype);
      const auto processes = alone();
      const AdamW optimizer(model, {}, *processes);
      const HeldBytes held(model.parameters());
      double gradients = 0;
      for (const Parameter& parameter : model.parameters())
        gradients += static_cast<double>(parameter.value.nbytes());
      RunConfig config;
      const Method method = resolve_method(config.method, config.loss);
      const MemoryPlan plan = plan_memory(model.shape(), config, method, at::kCPU, dtype);
      EXPECT_EQ(part(plan, "weights"), held.weights);
      EXPECT_EQ(part(plan, "masters"), held.masters);
      EXPECT_EQ(part(plan, "moments"), held.moments);
      // Over micro-batches, fp32 gradients stay, and others have sums in fp32.
      if (dtype == at::kFloat) {
        EXPECT_EQ(part(plan, "gradients"), gradients);
        EXPECT_EQ(part(plan, "gradient sums"), 0);
      } else {
        EXPECT_EQ(part(plan, "gradient sums"), held.masters);
      }
      EXPECT_EQ(part(plan, "reference"), 0);
      // At most 256 responses of 256 tokens, in pages of 32; a page for each of 32 prompts, a
      // quarter for each response, and one.
      EXPECT_EQ(
          part(plan, "keys and values"),
          static_cast<double>((256 * 256 / kPageTokens + 32 + 64 + 1) * KvPool::page_bytes(model)));
    }
  }
}

TEST(MemoryPlan, AFrozenBaseIsCountedToTheByte) {
  for (const bool sparse : {false, true}) {
    for (const QuantizedKind kind : {QuantizedKind::kInt8, QuantizedKind::kNf4}) {
      ModelShape shape = small_shape(sparse);
      shape.base = kind;
      CausalLm model(shape, at::kCPU, at::kBFloat16);
      const auto processes = alone();
      const AdamW optimizer(model, {}, *processes);
      const HeldBytes held(model.parameters());
      double base = 0;
      for (const ParameterBlock& block : model.parameters().blocks())
        if (block.codes.defined())
          base += static_cast<double>(block.codes.nbytes() + block.scales.nbytes());
      RunConfig config;
      const MemoryPlan plan = plan_memory(shape, config, resolve_method(config.method, config.loss),
                                          at::kCPU, at::kBFloat16);
      EXPECT_GT(base, 0);
      EXPECT_EQ(part(plan, "frozen base"), base);
      EXPECT_EQ(part(plan, "weights"), held.weights);
      EXPECT_EQ(part(plan, "masters"), held.masters);
      EXPECT_EQ(part(plan, "moments"), held.moments);
      // The gate and up of all experts, or of the one gated unit.
      EXPECT_EQ(part(plan, "dequantised"), 2.0 * (sparse ? 4 * 2 * 16 : 2 * 48) * 32);
    }
  }
}

TEST(MemoryPlan, APartOfTheOptimizersStateIsCountedToTheByte) {
  RunConfig config;
  const Method method = resolve_method(config.method, config.loss);
  for (const auto& [size, members] : {std::pair(2, 2), std::pair(3, 3), std::pair(8, 4)}) {
    CausalLm model(small_shape(true), at::kCPU, at::kBFloat16);
    // As Teams gives it to the first member, who has the longest part.
    model.parameters().make_optimizer_state({0, members, size / members});
    const HeldBytes held(model.parameters());
    for (const Shard shard : {Shard::kOptimizer, Shard::kGradients, Shard::kWeights}) {
      const MemoryPlan plan = plan_memory(model.shape(), config, method, at::kCPU, at::kBFloat16,
                                          {size, members, shard});
      EXPECT_EQ(part(plan, "masters"), held.masters);
      EXPECT_EQ(part(plan, "moments"), held.moments);
      if (shard != Shard::kWeights) {
        EXPECT_EQ(part(plan, "weights"), held.weights);
      }
    }
  }
}

TEST(MemoryPlan, DividedLayersAreCountedToTheByte) {
  RunConfig config;
  const Method method = resolve_method(config.method, config.loss);
  for (const auto& [size, members] : {std::pair(3, 3), std::pair(4, 2)}) {
    const MemoryPlan plan = plan_memory(small_shape(true), config, method, at::kCPU, at::kBFloat16,
                                        {size, members, Shard::kWeights});
    run_ranks(size, [&, members = members](Communicator& ranks) {
      CausalLm model(small_shape(true), at::kCPU, at::kBFloat16);
      ParameterStore& store = model.parameters();
      Teams teams(ranks, members);
      WeightShards shards(store, teams);
      double parts = 0, whole = 0, rest = 0;
      shards.divide();
      for (const ParameterBlock& block : store.blocks())
        if (block.layer) parts += static_cast<double>(shards.part(block).nbytes());
      shards.gather();
      for (const ParameterBlock& block : store.blocks())
        (block.layer ? whole : rest) += static_cast<double>(block.values.storage().nbytes());
      EXPECT_EQ(part(plan, "layers", MemoryTime::kUpdate), parts);
      EXPECT_EQ(part(plan, "layers", MemoryTime::kRollout), whole);
      EXPECT_EQ(part(plan, "weights"), rest);
    });
  }
}

TEST(MemoryPlan, AStateOnTheHostIsCountedToTheByte) {
  RunConfig config;
  config.rollout.max_sequence_tokens = config.train.micro_batch_tokens = 8;
  const Method method = resolve_method(config.method, config.loss);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const int size : {1, 3}) {
      CausalLm model(small_shape(true), at::kCPU, dtype);
      model.parameters().make_optimizer_state({0, size, 1}, Offload::kAll);
      const HeldBytes held(model.parameters());
      const auto plan = [&](Offload offload) {
        return plan_memory(model.shape(), config, method, at::kCUDA, dtype,
                           {.size = size,
                            .members = size,
                            .shard = size > 1 ? Shard::kOptimizer : Shard::kNone,
                            .offload = offload});
      };
      const MemoryPlan none = plan(Offload::kNone), moments = plan(Offload::kMoments),
                       all = plan(Offload::kAll);
      EXPECT_EQ(none.total(MemoryTime::kOnHost), 0);
      EXPECT_EQ(moments.total(MemoryTime::kOnHost), held.moments);
      EXPECT_EQ(all.total(MemoryTime::kOnHost), held.moments + held.masters);
      EXPECT_EQ(none.total(MemoryTime::kAlways) - moments.total(MemoryTime::kAlways), held.moments);
      EXPECT_EQ(none.total(MemoryTime::kAlways) - all.total(MemoryTime::kAlways),
                held.moments + held.masters);
      // A CPU has nothing beside its own memory.
      EXPECT_EQ(
          plan_memory(model.shape(), config, method, at::kCPU, dtype, {.offload = Offload::kAll})
              .total(MemoryTime::kOnHost),
          0);
    }
  }
}

// Over micro-batches only a layer's gradients, the embedding's and the last norm's are there beside
// the sums. With few tokens the optimizer's step needs more: three buffers of a whole layer.
TEST(MemoryPlan, GradientsAreFoldedAndPiecesStreamed) {
  RunConfig config;
  config.rollout.max_sequence_tokens = config.train.micro_batch_tokens = 8;
  const Method method = resolve_method(config.method, config.loss);
  constexpr double kPiece = 4096, kLayer = 8 * kPiece;
  const auto plan = [&](Offload offload) {
    return plan_memory(small_shape(false), config, method, at::kCUDA, at::kBFloat16,
                       {.offload = offload});
  };
  // In the last layer's backward pass the norm's, 32 elements, are left out.
  EXPECT_EQ(part(plan(Offload::kNone), "gradients"), 2 * (kLayer + 96 * 32));
  EXPECT_EQ(part(plan(Offload::kMoments), "stream buffers"), 3 * 2 * 4 * kLayer);
  EXPECT_EQ(part(plan(Offload::kAll), "stream buffers"), 3 * 3 * 4 * kLayer);
}

// Worked by hand. A layer of the dense model has 8 parameters of at most 4,096 elements, each in a
// piece of 4,096: qkv 64 x 32, output 32 x 32, gate and up 96 x 32, down 32 x 48, four norms.
// Embedding 96 x 32 and last norm are a piece each.
TEST(MemoryPlan, RanksDivideWhatDistShardSays) {
  RunConfig config;
  config.rollout.max_sequence_tokens = config.train.micro_batch_tokens = 8;
  const Method method = resolve_method(config.method, config.loss);
  const auto plan = [&](const RankDivision& ranks) {
    return plan_memory(small_shape(false), config, method, at::kCPU, at::kBFloat16, ranks);
  };
  constexpr double kPiece = 4096, kLayer = 8 * kPiece, kWaiting = 96 * 32 + 32 + kLayer;
  // With so few tokens the end of the backward pass needs most. Embedding, norm and a layer wait;
  // three layers are there as sent and as received. Each rank sums a quarter of a layer; a block of
  // one piece makes a chunk of one piece for everyone.
  const MemoryPlan none = plan({4, 1, Shard::kNone});
  EXPECT_EQ(part(none, "weights"), 2 * (3 * kLayer + 2 * kPiece));
  EXPECT_EQ(part(none, "masters"), 4 * (3 * kLayer + 2 * kPiece));
  EXPECT_EQ(part(none, "gradients"), 2 * (kWaiting + 2 * 3 * kLayer));
  EXPECT_EQ(part(none, "gradient sums"), 4 * (3 * kLayer / 4 + 2 * kPiece));
  // 2,048 tokens in one round of four micro-batches: sums take the place of what was sent.
  config.train.micro_batch_tokens = 512;
  EXPECT_EQ(part(plan({4, 1, Shard::kNone}), "gradient sums"), 0);
  EXPECT_EQ(part(plan({4, 1, Shard::kNone}), "gradients"), part(none, "gradients"));
  config.train.micro_batch_tokens = 8;

  const MemoryPlan gradients = plan({4, 4, Shard::kGradients});
  EXPECT_EQ(part(gradients, "masters"), 4 * (3 * kLayer / 4 + 2 * kPiece));
  EXPECT_EQ(part(gradients, "gradients"), 2 * (kWaiting + 2 * 2 * kLayer));

  // Two teams of two: a part is two of the four chunks.
  const MemoryPlan nodes = plan({4, 2, Shard::kOptimizer});
  EXPECT_EQ(part(nodes, "moments"), 8 * (3 * kLayer / 2 + 2 * kPiece));

  const MemoryPlan weights = plan({4, 4, Shard::kWeights});
  EXPECT_EQ(part(weights, "weights"), 2 * 2 * kPiece);
  EXPECT_EQ(part(weights, "layers", MemoryTime::kRollout), 2 * 3 * kLayer);
  EXPECT_EQ(part(weights, "layers", MemoryTime::kScoring), 2 * 3 * kLayer);
  EXPECT_EQ(part(weights, "layers", MemoryTime::kUpdate), 2 * 3 * kLayer / 4);
  EXPECT_EQ(part(weights, "layers in use"), 2 * 2 * kLayer);
  const double steps = part(weights, "chunks and steps");
  EXPECT_EQ(weights.beside_cache(), weights.total(MemoryTime::kAlways) + 2 * 3 * kLayer + steps);
  // For good: no phase has whole layers but the few in use.
  const MemoryPlan divided = plan({4, 4, Shard::kWeights, /*whole_between=*/false});
  for (const MemoryTime when : {MemoryTime::kRollout, MemoryTime::kScoring, MemoryTime::kUpdate})
    EXPECT_EQ(part(divided, "layers", when), 2 * 3 * kLayer / 4);
  EXPECT_EQ(part(divided, "layers in use", MemoryTime::kRollout), 2 * 3 * kLayer);
  EXPECT_EQ(part(divided, "layers in use", MemoryTime::kUpdate), 2 * 2 * kLayer);
  EXPECT_EQ(divided.total(MemoryTime::kUpdate), weights.total(MemoryTime::kUpdate));
  // Three ranks make parts of three pieces of a layer's eight.
  const MemoryPlan three = plan({3, 3, Shard::kWeights});
  EXPECT_EQ(part(three, "layers", MemoryTime::kUpdate), 2 * 3 * 3 * kPiece);
  EXPECT_EQ(part(three, "layers", MemoryTime::kRollout), 2 * 3 * 9 * kPiece);
  // What the steps leave, or all that the responses can use: 8 prompts x 8, a page each, a page a
  // prompt, a quarter of one a response, and one.
  EXPECT_EQ(weights.cache_share, 0.5);
  EXPECT_EQ(weights.cache_bytes(weights.beside_cache() + 1000), 1000);
  EXPECT_EQ(weights.cache_bytes(1e12), (64 + 8 + 16 + 1) * 32.0 * 2 * 2 * 3 * 16);
  EXPECT_EQ(weights.cache_bytes(0), 0);
}

// Worked by hand, for bf16: a layer of width 32 with 4 x 8 queries, 2 x 8 keys and 48 units. A
// recomputed layer keeps its input in fp32, attention's result and its sums; a kept one also the
// stream between its halves, two norms, the projection, queries and keys and values, gate, up and
// their product. Backward adds the stream's gradient and those of gate and up.
TEST(MemoryPlan, TheLastLayersAreKept) {
  RunConfig config;
  const auto activations = [&](std::size_t kept) {
    return part(plan_memory_keeping(kept, small_shape(false), config,
                                    resolve_method(config.method, config.loss), at::kCPU,
                                    at::kBFloat16, {4, 4, Shard::kOptimizer}),
                "activations");
  };
  constexpr double kTokens = 32'768, kInput = 4 * 32 + 2 * 32 + 4 * 4;
  constexpr double kKept = kInput + 4 * 32 + 2 * (2 * 32 + 64 + 64 + 3 * 48);
  constexpr double kBackward = 4 * 32 + 2 * 2 * 48, kStates = 2 * 32;
  EXPECT_EQ(activations(0), kTokens * (2 * kInput + kKept + kBackward + kStates));
  // One that is kept takes no more than one that is recomputed.
  EXPECT_EQ(activations(1), activations(0));
  EXPECT_EQ(activations(2), kTokens * (kInput + 2 * kKept + kBackward + kStates));
  EXPECT_EQ(activations(3), kTokens * (3 * kKept + kBackward + kStates));
  EXPECT_EQ(activations(9), activations(3));
}

// Auto keeps the most layers that fit.
TEST(MemoryPlan, AutoKeepsWhatFits) {
  RunConfig config;
  const Method method = resolve_method(config.method, config.loss);
  const auto needed = [](const MemoryPlan& plan) {
    return plan.total(MemoryTime::kAlways) + plan.total(MemoryTime::kUpdate);
  };
  const auto chosen = [&](double memory, const RankDivision& ranks = {}) {
    return plan_memory(small_shape(false), config, method, at::Device(at::kCUDA), at::kBFloat16,
                       ranks, memory);
  };
  EXPECT_EQ(chosen(0).kept_layers, 0);
  EXPECT_EQ(chosen(1e12).kept_layers, 3);
  EXPECT_EQ(recomputing_text(chosen(0)), "the backward pass recomputes 3 of 3 layers");
  const double two = needed(plan_memory_keeping(2, small_shape(false), config, method,
                                                at::Device(at::kCUDA), at::kBFloat16));
  EXPECT_EQ(chosen(two / 0.9 + 1).kept_layers, 2);
  EXPECT_EQ(needed(chosen(two / 0.9 + 1)), two);
  EXPECT_LT(chosen(two / 0.9 - 1).kept_layers, 2);
  // Divided weights are fetched again as layers are recomputed.
  EXPECT_EQ(chosen(1e12, {4, 4, Shard::kWeights}).kept_layers, 0);
  config.model.gradient_checkpointing = "true";
  EXPECT_EQ(chosen(1e12).kept_layers, 0);
  config.model.gradient_checkpointing = "false";
  EXPECT_EQ(chosen(0).kept_layers, 3);
}

// Of adapters, what is trained is a fraction; the reference is the base itself.
TEST(MemoryPlan, AdaptersAreCountedToTheByte) {
  RunConfig config;
  for (const char* line : {"model.lora.rank=4", "model.lora.experts=true", "loss.kl_coef=0.1",
                           "method.name=sdpo", "method.sdpo.teacher_ema=0.05"})
    config.options().assign(line);
  config.resolve();
  const Method method = resolve_method(config.method, config.loss);
  for (const bool sparse : {false, true}) {
    const ModelShape whole = small_shape(sparse), shape = adapted_shape(whole, config.model.lora);
    CausalLm model(shape, at::kCPU, at::kBFloat16);
    const auto processes = alone();
    const AdamW optimizer(model, {}, *processes);
    const SlowTeacher teacher(model);
    const HeldBytes held(model.parameters()), average(teacher.average().parameters()),
        rounded(teacher.model().parameters());
    const MemoryPlan plan = plan_memory(shape, config, method, at::kCPU, at::kBFloat16);
    EXPECT_EQ(part(plan, "weights"), held.weights);
    EXPECT_EQ(part(plan, "masters"), held.masters);
    EXPECT_EQ(part(plan, "moments"), held.moments);
    EXPECT_EQ(part(plan, "gradient sums"), held.masters);
    EXPECT_EQ(part(plan, "teacher"), average.weights + rounded.weights);
    EXPECT_EQ(part(plan, "reference"), 0);
    EXPECT_LT(held.moments, 2 * held.weights);
    // Frozen layers are not divided.
    const MemoryPlan divided =
        plan_memory(shape, config, method, at::kCPU, at::kBFloat16, {2, 2, Shard::kWeights});
    EXPECT_EQ(part(divided, "weights"), held.weights);
    EXPECT_LT(plan.needed(), plan_memory(whole, config, method, at::kCPU, at::kBFloat16).needed());
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
            3 * part(base, "weights"));  // 4 + 2 bytes for 2
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

// Another model as the teacher: on a GPU at rest on the host and here while it scores, on a CPU
// always here.
TEST(MemoryPlan, CountsATeacherThatIsAnotherModel) {
  RunConfig config;
  config.options().assign("method.name=opd");
  config.options().assign("method.teacher.path=other");
  config.options().assign("method.opd.divergence=reverse-kl");
  config.resolve();
  const Method method = resolve_method(config.method, config.loss);
  ModelShape teacher = small_shape(false);
  teacher.layers.push_back(teacher.layers.back());
  const CausalLm model(teacher, at::kCPU, at::kBFloat16);
  const double weights = HeldBytes(model.parameters()).weights;
  const auto plan = [&](at::Device device, const ModelShape* other) {
    return plan_memory(small_shape(false), config, method, device, at::kBFloat16, {}, 0, other);
  };
  const auto bytes = [](const MemoryPlan& found, const char* name, MemoryTime when) {
    double sum = 0;
    for (const MemoryPart& part : found.parts)
      if (part.name == name && part.when == when) sum += part.bytes;
    return sum;
  };
  const MemoryPlan gpu = plan(at::Device(at::kCUDA), &teacher);
  EXPECT_EQ(bytes(gpu, "teacher", MemoryTime::kOnHost), weights);
  EXPECT_EQ(bytes(gpu, "teacher", MemoryTime::kScoring), weights);
  EXPECT_EQ(bytes(gpu, "teacher", MemoryTime::kAlways), 0);
  const double head = 2.0 * static_cast<double>(teacher.vocabulary * teacher.hidden);
  EXPECT_EQ(bytes(gpu, "teacher's head", MemoryTime::kUpdate), head);
  EXPECT_GT(gpu.teacher_on_host(), weights);  // and its states
  EXPECT_EQ(gpu.teacher_on_host(), gpu.total(MemoryTime::kOnHost));
  const MemoryPlan cpu = plan(at::kCPU, &teacher);
  EXPECT_EQ(bytes(cpu, "teacher", MemoryTime::kAlways), weights);
  EXPECT_EQ(cpu.teacher_on_host(), 0);
  EXPECT_EQ(plan(at::Device(at::kCUDA), nullptr).teacher_on_host(), 0);
}

}  // namespace
}  // namespace antisd::inline trainer
