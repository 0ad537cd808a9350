// Models whose layers' matrices are quantised, against plain models that hold the dequantised
// numbers.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "core/check.h"
#include "core/testing.h"
#include "io/atomic_file.h"
#include "model/testing.h"
#include "model/weights.h"

namespace antisd::inline model {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

CausalLm load_quantized(const std::filesystem::path& folder, QuantizedKind kind) {
  return load_model(folder, at::kCPU, at::kFloat, {.base_format = kind});
}

// The plain model with the numbers of a quantised one.
CausalLm dequantized_copy(const CausalLm& model) {
  ModelShape shape = model.shape();
  shape.base.reset();
  CausalLm copy(std::move(shape), model.device(), model.dtype());
  const at::NoGradGuard no_grad;
  for (Parameter& parameter : copy.parameters()) {
    const Parameter& own = model.parameters().at(parameter.name());
    parameter.value.copy_(own.quantized.defined() ? dequantize(own.quantized, at::kFloat)
                                                  : own.value);
  }
  return copy;
}

std::vector<std::vector<std::int32_t>> some_sequences() {
  std::vector<std::vector<std::int32_t>> sequences;
  for (const int length : {1, 9, 30}) {
    sequences.emplace_back();
    for (int i = 0; i < length; ++i)
      sequences.back().push_back((length * 13 + i * 7 + i * i) % 40);
  }
  return sequences;
}

void expect_close(const at::Tensor& a, const at::Tensor& b, const std::string& what) {
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  const double scale = std::max(1.0, b.abs().max().item<double>());
  EXPECT_LT((a - b).abs().max().item<double>(), 2e-5 * scale) << what;
}

class QuantizedModel : public ::testing::TestWithParam<std::tuple<std::string, QuantizedKind>> {
 protected:
  const std::filesystem::path folder_ = testing::fixture("model") / std::get<0>(GetParam());
  CausalLm model_ = load_quantized(folder_, std::get<1>(GetParam()));
  CausalLm plain_ = dequantized_copy(model_);
  const PackedBatch batch_ = pack(some_sequences(), at::kCPU);
};

TEST_P(QuantizedModel, HasTheLogitsOfItsDequantizedNumbers) {
  const at::NoGradGuard no_grad;
  expect_close(model_.hidden_states(batch_), plain_.hidden_states(batch_), "hidden states");
  // And not those of the exact weights.
  const CausalLm exact = load_model(folder_, at::kCPU, at::kFloat);
  EXPECT_GT((exact.hidden_states(batch_) - plain_.hidden_states(batch_)).abs().max().item<double>(),
            1e-3);
}

TEST_P(QuantizedModel, GivesTheRestTheSameGradients) {
  for (CausalLm* model : {&model_, &plain_})
    model->parameters().require_gradients();
  for (const Pass pass : {Pass::kTraining, Pass::kRecomputed}) {
    for (CausalLm* model : {&model_, &plain_})
      model->hidden_states(batch_, pass).sin().sum().backward();
    std::size_t compared = 0;
    for (const Parameter& parameter : model_.parameters()) {
      if (parameter.quantized.defined()) continue;
      const at::Tensor& expected = plain_.parameters().at(parameter.name()).value.grad();
      if (!expected.defined()) continue;  // an untied head is not used
      expect_close(parameter.value.grad(), expected, parameter.name());
      ++compared;
    }
    EXPECT_GT(compared, 2 * model_.shape().layers.size());
    for (CausalLm* model : {&model_, &plain_})
      model->parameters().drop_gradients();
  }
}

// Adapters on every projection, above a quantised base and above its dequantised numbers.
TEST_P(QuantizedModel, AdaptersAboveItHaveTheSameGradients) {
  const auto adapted = [&](const CausalLm& source) {
    ModelShape shape = source.shape();
    shape.lora = LoraShape{
        .rank = 2,
        .alpha = 4,
        .targets = {"down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"},
        .experts = std::ranges::any_of(shape.layers, &LayerShape::sparse)};
    CausalLm model(std::move(shape), at::kCPU, at::kFloat);
    const at::NoGradGuard no_grad;
    at::Generator generator = at::detail::createCPUGenerator(8);
    for (Parameter& parameter : model.parameters()) {
      if (parameter.spec.is_adapter()) {
        parameter.value.copy_(at::randn(parameter.spec.sizes, generator, at::kFloat) * 0.2);
        continue;
      }
      const Parameter& from = source.parameters().at(parameter.name());
      if (from.quantized.defined()) {
        parameter.quantized.codes.copy_(from.quantized.codes);
        parameter.quantized.scales.copy_(from.quantized.scales);
      } else {
        parameter.value.copy_(from.value);
      }
    }
    return model;
  };
  CausalLm model = adapted(model_), plain = adapted(plain_);
  for (CausalLm* each : {&model, &plain})
    each->parameters().require_gradients();
  for (const Pass pass : {Pass::kTraining, Pass::kRecomputed}) {
    std::vector<at::Tensor> hidden;
    for (CausalLm* each : {&model, &plain}) {
      hidden.push_back(each->hidden_states(batch_, pass));
      hidden.back().sin().sum().backward();
    }
    expect_close(hidden[0].detach(), hidden[1].detach(), "hidden states");
    std::size_t compared = 0;
    for (const Parameter& parameter : model.parameters()) {
      if (!parameter.spec.trainable) continue;
      const at::Tensor& expected = plain.parameters().at(parameter.name()).value.grad();
      ASSERT_TRUE(expected.defined()) << parameter.name();
      expect_close(parameter.value.grad(), expected, parameter.name());
      ++compared;
    }
    EXPECT_GE(compared, 8 * model.shape().layers.size());
    for (CausalLm* each : {&model, &plain})
      each->parameters().drop_gradients();
  }
  // Without adapters it is the base itself, in the same memory.
  const CausalLm off(model, std::nullopt, model.dtype());
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(off.hidden_states(batch_).equal(model_.hidden_states(batch_)));
  for (const Parameter& parameter : off.parameters()) {
    if (!parameter.quantized.defined()) continue;
    EXPECT_TRUE(parameter.quantized.codes.is_alias_of(
        model.parameters().at(parameter.name()).quantized.codes));
  }
}

INSTANTIATE_TEST_SUITE_P(OfEveryArchitecture, QuantizedModel,
                         ::testing::Combine(::testing::ValuesIn(testing::recorded_models()),
                                            ::testing::Values(QuantizedKind::kInt8,
                                                              QuantizedKind::kNf4)),
                         [](const auto& info) {
                           return std::get<0>(info.param) +
                                  (std::get<1>(info.param) == QuantizedKind::kInt8 ? "_int8"
                                                                                   : "_nf4");
                         });

CausalLm small_quantized(QuantizedKind kind, at::ScalarType dtype = at::kFloat) {
  Json config = testing::small_config();
  config["intermediate_size"] = 70;  // not a multiple of a block
  ModelShape shape = parse_model_shape(config, "x");
  shape.base = kind;
  CausalLm model(std::move(shape), at::kCPU, dtype);
  initialise_randomly(model, 5);
  return model;
}

TEST(QuantizedStore, HoldsCodesInsteadOfValues) {
  CausalLm model = small_quantized(QuantizedKind::kNf4, at::kBFloat16);
  ParameterStore& store = model.parameters();
  store.require_gradients();
  store.make_optimizer_state();
  for (const ParameterBlock& block : store.blocks()) {
    EXPECT_EQ(block.codes.defined(), block.layer.has_value());
    for (const Parameter& parameter : store.of(block)) {
      const std::string& name = parameter.name();
      const bool matrix = name.ends_with(".qkv") || name.ends_with(".output") ||
                          name.ends_with(".gate_up") || name.ends_with(".down");
      EXPECT_EQ(parameter.quantized.defined(), matrix) << name;
      EXPECT_EQ(parameter.value.defined(), !matrix) << name;
      EXPECT_EQ(parameter.first_moment.defined(), !matrix) << name;
      if (!matrix) continue;
      const QuantizedWeight& weight = parameter.quantized;
      EXPECT_EQ(weight.sizes(), parameter.spec.sizes);
      EXPECT_TRUE(weight.codes.is_alias_of(block.codes) && weight.scales.is_alias_of(block.scales));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(weight.codes.const_data_ptr()) % 16, 0u);
    }
  }
  // 2 x 35 bytes would be a row of 70; blocks of 64 make it 64 bytes and 2 scales.
  EXPECT_EQ(store.at("layers.0.down").bytes(), 16u * (64 + 2 * 4));
}

// Neighbours in a block's allocation do not touch each other's codes.
TEST(QuantizedStore, AParameterIsSetAlone) {
  for (const QuantizedKind kind : {QuantizedKind::kInt8, QuantizedKind::kNf4}) {
    CausalLm model = small_quantized(kind);
    const CausalLm before = dequantized_copy(model);
    Parameter& changed = model.parameters().at("layers.1.gate_up");
    changed.set(at::ones(changed.spec.sizes));
    const CausalLm after = dequantized_copy(model);
    for (const Parameter& parameter : after.parameters()) {
      if (parameter.name() == changed.name()) {
        EXPECT_TRUE(parameter.value.eq(1).all().item<bool>());
      } else {
        EXPECT_TRUE(parameter.value.equal(before.parameters().at(parameter.name()).value));
      }
    }
  }
}

class QuantizedWeights : public ::testing::Test {
 protected:
  QuantizedWeights() {
    initialise_randomly(model_, 1);
    write_file_atomically(folder_ / "config.json", testing::small_config().dump());
  }
  void save() { save_model(model_, folder_.path(), folder_.path(), at::kFloat); }
  std::string error_of_load(at::ScalarType dtype, QuantizedKind kind) {
    return error_of([&] { load_model(folder_.path(), at::kCPU, dtype, {.base_format = kind}); });
  }

  testing::TemporaryFolder folder_;
  CausalLm model_{parse_model_shape(testing::small_config(), "x"), at::kCPU, at::kFloat};
};

// The rows of queries, keys and values are three tensors of the file.
TEST_F(QuantizedWeights, AreThoseOfTheFilesTensors) {
  save();
  for (const QuantizedKind kind : {QuantizedKind::kInt8, QuantizedKind::kNf4}) {
    const CausalLm loaded = load_quantized(folder_.path(), kind);
    for (const Parameter& parameter : loaded.parameters()) {
      const at::Tensor& exact = model_.parameters().at(parameter.name()).value;
      if (!parameter.quantized.defined()) {
        EXPECT_TRUE(parameter.value.equal(exact)) << parameter.name();
        continue;
      }
      const QuantizedWeight expected = empty_quantized(kind, parameter.spec.sizes, at::kCPU);
      quantize_into(exact, expected);
      EXPECT_TRUE(parameter.quantized.codes.equal(expected.codes)) << parameter.name();
      EXPECT_TRUE(parameter.quantized.scales.equal(expected.scales)) << parameter.name();
    }
  }
}

TEST_F(QuantizedWeights, NanAndInfinityAreRefusedByName) {
  for (const float bad : {NAN, -INFINITY}) {
    model_.parameters().at("layers.1.qkv").value[20][3] = bad;  // a key: 32 rows of queries before
    model_.parameters().at("layers.1.qkv").value[33][3] = bad;
    save();
    for (const QuantizedKind kind : {QuantizedKind::kInt8, QuantizedKind::kNf4})
      EXPECT_THAT(error_of_load(at::kFloat, kind),
                  HasSubstr("the tensor model.layers.1.self_attn.q_proj.weight holds NaN or "
                            "infinity"));
  }
}

TEST_F(QuantizedWeights, AreNotSaved) {
  save();
  const CausalLm quantized = load_quantized(folder_.path(), QuantizedKind::kInt8);
  EXPECT_THROW(save_model(quantized, folder_.path(), folder_ / "out", at::kFloat), CheckFailure);
}

}  // namespace
}  // namespace antisd::inline model
