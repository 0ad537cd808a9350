#include "model/parameter_store.h"

#include <cstdint>

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "core/check.h"
#include "core/testing.h"
#include "io/safetensors.h"
#include "model/architecture.h"
#include "model/testing.h"
#include "model/weights.h"

namespace antisd::inline model {
namespace {

using ::testing::ElementsAre;

CausalLm small_model(at::ScalarType dtype) {
  Json config = testing::small_config();
  config["hidden_size"] = 17;  // so that there are gaps between pieces
  return CausalLm(parse_model_shape(config, "x"), at::kCPU, dtype);
}

bool lies_in(const at::Tensor& part, const at::Tensor& whole) {
  const auto* begin = static_cast<const std::byte*>(whole.const_data_ptr());
  const auto* data = static_cast<const std::byte*>(part.const_data_ptr());
  return data >= begin && data + part.nbytes() <= begin + whole.nbytes();
}

TEST(ParameterStore, ABlockIsOneAllocationOfEachKind) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    CausalLm model = small_model(dtype);
    ParameterStore& store = model.parameters();
    store.require_gradients();
    store.make_optimizer_state();
    for (Parameter& parameter : store)
      parameter.value.mutable_grad() = at::ones_like(parameter.value);
    store.take_gradients();
    std::vector<std::string> names;
    for (const ParameterBlock& block : store.blocks()) {
      names.push_back(block.name);
      std::int64_t elements = 0;
      for (const Parameter& parameter : store.of(block)) {
        const auto expect_piece = [&](const at::Tensor& piece, const at::Tensor& whole) {
          ASSERT_EQ(piece.defined(), whole.defined());
          if (!piece.defined()) return;
          EXPECT_EQ(piece.sizes(), at::IntArrayRef(parameter.spec.sizes));
          EXPECT_TRUE(piece.is_contiguous() && lies_in(piece, whole)) << parameter.name();
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece.const_data_ptr()) % 64, 0u);
        };
        expect_piece(parameter.value, block.values);
        expect_piece(parameter.master, block.masters);
        expect_piece(parameter.first_moment, block.first_moments);
        expect_piece(parameter.second_moment, block.second_moments);
        expect_piece(parameter.gradient_sum, block.gradient_sums);
        EXPECT_TRUE(parameter.value.is_leaf() && parameter.value.requires_grad());
        elements += parameter.spec.count();
      }
      // A sum over a block is the sum over its parameters: gaps are 0.
      if (dtype == at::kFloat) continue;
      EXPECT_EQ(block.gradient_sums.sum().item<double>(), static_cast<double>(elements));
      EXPECT_GT(block.gradient_sums.numel(), elements);
    }
    EXPECT_THAT(names, ElementsAre("embedding", "layers.0", "layers.1", "head"));
    store.drop_gradients();
    EXPECT_FALSE(store.at("embedding").gradient_sum.defined());
    EXPECT_FALSE(store.blocks()[0].gradient_sums.defined());
  }
}

TEST(ParameterStore, NeighboursDoNotMeet) {
  CausalLm model = small_model(at::kFloat);
  initialise_randomly(model, 3);
  ParameterStore& store = model.parameters();
  store.require_gradients();
  Parameter& qkv = store.at("layers.0.qkv");
  const at::Tensor loss = qkv.value.square().sum();
  {
    const at::NoGradGuard no_grad;
    for (Parameter& parameter : store)
      if (&parameter != &qkv) parameter.value.fill_(9);  // must not change what the loss has kept
  }
  loss.backward();
  EXPECT_TRUE(qkv.value.grad().equal(2 * qkv.value.detach()));
  for (const Parameter& parameter : store) {
    if (&parameter == &qkv) continue;
    EXPECT_TRUE(parameter.value.eq(9).all().item<bool>()) << parameter.name();
    EXPECT_FALSE(parameter.value.grad().defined()) << parameter.name();
  }
}

TEST(ParameterStore, AModelThatIsMovedComputesWithTheSameValues) {
  CausalLm model = small_model(at::kFloat);
  initialise_randomly(model, 3);
  const Parameter* before = &model.parameters().at("layers.1.down");
  const CausalLm moved = std::move(model);
  EXPECT_EQ(&moved.parameters().at("layers.1.down"), before);
  EXPECT_EQ(moved.layers()[1].down.weight.const_data_ptr(), before->value.const_data_ptr());
  EXPECT_THROW(moved.parameters().at("layers.2.down"), CheckFailure);
}

// Every element of a parameter is in exactly one tensor of the directory.
TEST(ParameterStore, TensorsOnDiskAreAllThereIs) {
  for (const char* name : {"qwen3_moe_mixed", "olmo3_yarn", "qwen2_tied", "llama_mha_tied"}) {
    const CausalLm model = CausalLm(
        read_model_shape(testing::fixture("model") / name / "config.json"), at::kCPU, at::kFloat);
    std::map<std::string, at::Tensor> touched;
    for (const Parameter& parameter : model.parameters())
      touched[parameter.name()] = at::zeros(parameter.spec.sizes);
    std::set<std::string> names;
    for (const auto& [parameter, slice] : model.parameters().stored_tensors()) {
      slice->of(touched.at(parameter->name())).add_(1);
      EXPECT_TRUE(names.insert(slice->name).second) << slice->name;
    }
    for (const auto& [parameter, count] : touched)
      EXPECT_TRUE(count.eq(1).all().item<bool>()) << parameter;
  }
}

// A checkpoint's bytes depend on the order of tensors in files.
TEST(ParameterStore, FilesKeepTheirOrder) {
  Json config = testing::small_config();
  config.update({{"model_type", "qwen3_moe"},
                 {"num_hidden_layers", 1},
                 {"attention_bias", true},
                 {"num_experts", 2},
                 {"num_experts_per_tok", 1},
                 {"moe_intermediate_size", 8}});
  const CausalLm model(parse_model_shape(config, "x"), at::kCPU, at::kFloat);
  std::vector<std::string> names;
  for (const auto& [parameter, slice] : model.parameters().stored_tensors())
    names.push_back(slice->name);
  const std::string layer = "model.layers.0.", attention = layer + "self_attn.",
                    mlp = layer + "mlp.";
  EXPECT_THAT(
      names,
      ElementsAre("model.embed_tokens.weight", layer + "input_layernorm.weight",
                  layer + "post_attention_layernorm.weight", attention + "q_proj.weight",
                  attention + "k_proj.weight", attention + "v_proj.weight",
                  attention + "o_proj.weight", attention + "q_proj.bias", attention + "k_proj.bias",
                  attention + "v_proj.bias", attention + "o_proj.bias", attention + "q_norm.weight",
                  attention + "k_norm.weight", mlp + "gate.weight",
                  mlp + "experts.0.gate_proj.weight", mlp + "experts.0.up_proj.weight",
                  mlp + "experts.0.down_proj.weight", mlp + "experts.1.gate_proj.weight",
                  mlp + "experts.1.up_proj.weight", mlp + "experts.1.down_proj.weight",
                  "model.norm.weight"));
}

}  // namespace
}  // namespace antisd::inline model
