// Directories that do not match their config.json, and the precisions of weights.
#include "model/weights.h"

#include <gmock/gmock.h>

#include "core/testing.h"
#include "io/atomic_file.h"
#include "io/safetensors.h"
#include "io/safetensors_writer.h"
#include "model/testing.h"

namespace antisd::inline model {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::small_config;

class Weights : public ::testing::Test {
 protected:
  Weights() {
    initialise_randomly(model_, 1);
    write_config(small_config());
  }

  void write_config(const Json& config) {
    write_file_atomically(folder_ / "config.json", config.dump());
  }
  void save(at::ScalarType dtype = at::kFloat) {
    save_model(model_, folder_.path(), folder_.path(), dtype);
  }
  std::string error_of_load(LoadOptions options = {}) {
    return error_of([&] { load_model(folder_.path(), at::kCPU, at::kFloat, options); });
  }
  Parameter& parameter(const std::string& name) { return model_.parameters().at(name); }
  // The saved tensors, changed by `change`, written again as one file.
  void rewrite(const std::function<void(std::vector<TensorSpec>&)>& change) {
    std::vector<TensorSpec> specs;
    {
      const SafetensorsFile file(folder_ / "model.safetensors");
      specs.assign(file.tensors().begin(), file.tensors().end());
    }
    change(specs);
    ShardedSafetensorsWriter writer(folder_.path(), specs, 5'000'000'000);
    for (const TensorSpec& spec : specs) {
      std::int64_t count = spec.type == TensorType::kF32   ? 4
                           : spec.type == TensorType::kI64 ? 8
                                                           : 2;
      for (const std::int64_t size : spec.shape)
        count *= size;
      writer.write(spec.name, std::vector<std::byte>(static_cast<std::size_t>(count)));
    }
    writer.finish();
  }

  testing::TemporaryFolder folder_;
  CausalLm model_{parse_model_shape(small_config(), "x"), at::kCPU, at::kFloat};
};

TEST_F(Weights, AllThatDoesNotFitIsListedAtOnce) {
  save();
  EXPECT_NO_THROW(load_model(folder_.path(), at::kCPU, at::kFloat, {.check_weights = true}));
  rewrite([](std::vector<TensorSpec>& specs) {
    std::erase_if(specs, [](const TensorSpec& spec) {
      return spec.name == "model.norm.weight" ||
             spec.name == "model.layers.0.self_attn.k_proj.weight";
    });
    for (TensorSpec& spec : specs) {
      if (spec.name == "model.layers.1.mlp.up_proj.weight") spec.shape = {25, 16};
      if (spec.name == "model.layers.1.self_attn.q_norm.weight") spec.type = TensorType::kI64;
    }
    specs.push_back({"model.layers.2.mlp.up_proj.weight", TensorType::kF32, {24, 16}});
    specs.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", TensorType::kF32, {4}});
  });
  EXPECT_THAT(
      error_of_load(),
      AllOf(HasSubstr(folder_.path().string() + ": the weights do not fit config.json"),
            HasSubstr("2 missing: model.layers.0.self_attn.k_proj.weight, model.norm.weight"),
            HasSubstr("1 of another shape: model.layers.1.mlp.up_proj.weight is [25, 16], not "
                      "[24, 16]"),
            HasSubstr("1 neither F32, F16 nor BF16: model.layers.1.self_attn.q_norm.weight is I64"),
            HasSubstr("1 that the model does not have: model.layers.2.mlp.up_proj.weight"),
            Not(HasSubstr("rotary_emb")), HasSubstr("use the config.json and weights of one")));
}

TEST_F(Weights, AConfigurationOfAnotherModelIsNoticed) {
  save();
  Json wider = small_config();
  wider["intermediate_size"] = 32;
  wider["num_hidden_layers"] = 3;
  write_config(wider);
  EXPECT_THAT(error_of_load(),
              AllOf(HasSubstr("missing: model.layers.2."), HasSubstr("of another shape: "),
                    HasSubstr("model.layers.0.mlp.gate_proj.weight is [24, 16], not [32, 16]")));
  Json fewer = small_config();
  fewer["num_hidden_layers"] = 1;
  write_config(fewer);
  EXPECT_THAT(error_of_load(), HasSubstr("that the model does not have: model.layers.1."));
  Json untied = small_config();
  untied["tie_word_embeddings"] = false;
  write_config(untied);
  EXPECT_THAT(error_of_load(), HasSubstr("1 missing: lm_head.weight"));
}

TEST_F(Weights, MissingFilesAreNamed) {
  EXPECT_THAT(error_of_load(), HasSubstr("neither model.safetensors nor"));
  const testing::TemporaryFolder copy;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::fixture("model/qwen3_mqa_sharded")))
    std::filesystem::copy(entry.path(), copy.path());
  EXPECT_NO_THROW(load_model(copy.path(), at::kCPU, at::kFloat));
  std::string shard;
  for (const auto& entry : std::filesystem::directory_iterator(copy.path())) {
    if (entry.path().filename().string().starts_with("model-00002"))
      shard = entry.path().filename();
  }
  ASSERT_FALSE(shard.empty());
  std::filesystem::remove(copy / shard);
  EXPECT_THAT(error_of([&] { load_model(copy.path(), at::kCPU, at::kFloat); }),
              AllOf(HasSubstr("files are missing: " + shard),
                    HasSubstr("fetch them into the same folder")));
  std::filesystem::remove(folder_ / "config.json");
  EXPECT_THAT(error_of_load(), HasSubstr("config.json"));
}

TEST_F(Weights, NanIsFoundByNameWhenAsked) {
  parameter("layers.1.down").value[3][5] = std::nan("");
  save();
  EXPECT_NO_THROW(load_model(folder_.path(), at::kCPU, at::kFloat));
  EXPECT_THAT(error_of_load({.check_weights = true}),
              AllOf(HasSubstr("model.layers.1.mlp.down_proj.weight holds NaN"),
                    HasSubstr("fetch the weights again")));
  // In the last element of the rows for keys, and in a 16-bit precision.
  parameter("layers.1.down").value.fill_(0);
  parameter("layers.0.qkv").value[47][15] = -std::numeric_limits<float>::infinity();
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
    save(dtype);
    EXPECT_THAT(error_of_load({.check_weights = true}),
                HasSubstr("model.layers.0.self_attn.k_proj.weight holds NaN or infinity"));
  }
}

TEST_F(Weights, EveryPrecisionOfFilesLoadsIntoEveryPrecisionOfModels) {
  for (const at::ScalarType stored : {at::kFloat, at::kHalf, at::kBFloat16}) {
    save(stored);
    for (const at::ScalarType wanted : {at::kFloat, at::kHalf, at::kBFloat16}) {
      const CausalLm loaded = load_model(folder_.path(), at::kCPU, wanted);
      for (const Parameter& parameter : model_.parameters()) {
        const at::Tensor expected = parameter.value.to(stored).to(wanted);
        EXPECT_TRUE(loaded.parameters().at(parameter.name()).value.equal(expected))
            << parameter.name();
      }
    }
  }
}

TEST_F(Weights, WhatFp16CannotHoldIsRefusedByName) {
  parameter("layers.0.qkv").value[47][15] = -65504;
  for (const at::ScalarType stored : {at::kFloat, at::kHalf}) {
    save(stored);
    EXPECT_NO_THROW(load_model(folder_.path(), at::kCPU, at::kHalf));
  }
  parameter("layers.0.qkv").value[47][15] = -65536;
  for (const at::ScalarType stored : {at::kFloat, at::kBFloat16}) {
    save(stored);
    EXPECT_NO_THROW(load_model(folder_.path(), at::kCPU, at::kBFloat16));
    EXPECT_THAT(
        error_of([&] { load_model(folder_.path(), at::kCPU, at::kHalf); }),
        AllOf(HasSubstr("model.layers.0.self_attn.k_proj.weight holds weights beyond 65504"),
              HasSubstr("bf16")));
  }
}

TEST_F(Weights, ATiedHeadMayBeStoredTooIfItIsTheSame) {
  save();
  rewrite([](std::vector<TensorSpec>& specs) {  // writes only zeros
    specs.push_back({"lm_head.weight", TensorType::kBF16, {32, 16}});
  });
  EXPECT_NO_THROW(load_model(folder_.path(), at::kCPU, at::kFloat));
  rewrite([](std::vector<TensorSpec>& specs) { specs.back().shape = {31, 16}; });
  EXPECT_THAT(error_of_load(),
              HasSubstr("lm_head.weight differs from it; set tie_word_embeddings"));
}

TEST_F(Weights, BatchesThatTheModelCannotTakeAreRefused) {
  const auto refused = [&](std::vector<std::int32_t> ids) {
    const std::vector<std::vector<std::int32_t>> sequences = {{1, 2}, std::move(ids)};
    return error_of([&] { model_.hidden_states(pack(sequences, at::kCPU)); });
  };
  EXPECT_THAT(refused({1, 32}), HasSubstr("hold ids 0 to 32; the model knows ids 0 to 31"));
  EXPECT_THAT(refused({-1}), HasSubstr("hold ids -1 to"));
  EXPECT_THAT(refused(std::vector<std::int32_t>(65, 1)),
              AllOf(HasSubstr("65 tokens; the model has 64 positions (max_position_embeddings)"),
                    HasSubstr("shorten")));
}

// The rule on precision.
TEST(ComputeDtype, FollowsTheDevice) {
  EXPECT_EQ(compute_dtype(at::kCPU), at::kFloat);
  const at::Device gpu(at::kCUDA, 1);
  EXPECT_EQ(compute_dtype(gpu), at::kBFloat16);
  EXPECT_EQ(compute_dtype(gpu, "bf16"), at::kBFloat16);
  EXPECT_EQ(compute_dtype(gpu, "fp16"), at::kHalf);
  EXPECT_EQ(compute_dtype(at::kCPU, "fp32"), at::kFloat);
  for (const char* name : {"bf16", "fp16"})
    EXPECT_THAT(error_of([&] { compute_dtype(at::kCPU, name); }), HasSubstr("only in fp32"));
  EXPECT_THAT(error_of([&] { compute_dtype(gpu, "fp32"); }), HasSubstr("bf16 or fp16"));
}

}  // namespace
}  // namespace antisd::inline model
