// Tests the steps of CONTRIBUTING's "add a model": a spec in one file, unknown to the program, is
// read, computed, differentiated, saved and sampled from. The reference is plain tensor arithmetic
// in double over the directory's tensors.
#include <map>

#include <gmock/gmock.h>

#include "core/testing.h"
#include "inference/rollout_engine.h"
#include "inference/scorer.h"
#include "io/atomic_file.h"
#include "io/safetensors.h"
#include "io/safetensors_writer.h"
#include "model/architecture.h"
#include "model/dense_forward.h"
#include "model/weights.h"
#include "ops/rms_norm.h"

namespace antisd::inline inference {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Four norms per layer, before and after each half, and its own tensor names. Computed as a Llama,
// which it is not, it would lack the two norms after.
void sandwich_parameters(LayerParameters& layer) {
  layer.norm("first_norm", "norm_1");
  layer.norm("second_norm", "norm_2");
  layer.norm("third_norm", "norm_3");
  layer.norm("fourth_norm", "norm_4");
  layer.attention(QkNorm::kNone);
  layer.gated_unit();
}

void sandwich_layer(ResidualStream& x, const LayerWeights& w, const LayerInputs& in) {
  const double eps = in.shape.norm_eps;
  const Product attended = self_attention(x.normed(w.first_norm, eps), w, QkNorm::kNone, in);
  x.add(rms_norm(attended.value(), w.others.at("third_norm"), eps));
  const Product units = gated_unit(x.normed(w.second_norm, eps), w);
  x.add(rms_norm(units.value(), w.others.at("fourth_norm"), eps));
}

const ArchitectureSpec kSandwich = {.model_type = "sandwich",
                                    .max_positions = 128,
                                    .norm_eps = 1e-3,
                                    .rope_theta = 100,
                                    .embedding_tensor = "words",
                                    .layers_prefix = "blocks.",
                                    .final_norm_tensor = "norm",
                                    .head_tensor = "out",
                                    .parameters = sandwich_parameters,
                                    .layer = sandwich_layer};

constexpr std::int64_t kVocabulary = 40, kHidden = 32, kUnits = 48, kHeads = 4, kKvHeads = 2,
                       kHeadDim = 8, kLayers = 2;

using Tensors = std::map<std::string, at::Tensor>;

Tensors make_tensors() {
  std::map<std::string, std::vector<std::int64_t>> sizes = {
      {"words", {kVocabulary, kHidden}}, {"norm", {kHidden}}, {"out", {kVocabulary, kHidden}}};
  for (int i = 0; i < kLayers; ++i) {
    const std::string block = fmt::format("blocks.{}.", i);
    for (int norm = 1; norm <= 4; ++norm)
      sizes[fmt::format("{}norm_{}.weight", block, norm)] = {kHidden};
    sizes[block + "self_attn.q_proj.weight"] = {kHeads * kHeadDim, kHidden};
    sizes[block + "self_attn.k_proj.weight"] = {kKvHeads * kHeadDim, kHidden};
    sizes[block + "self_attn.v_proj.weight"] = {kKvHeads * kHeadDim, kHidden};
    sizes[block + "self_attn.o_proj.weight"] = {kHidden, kHeads * kHeadDim};
    sizes[block + "mlp.gate_proj.weight"] = {kUnits, kHidden};
    sizes[block + "mlp.up_proj.weight"] = {kUnits, kHidden};
    sizes[block + "mlp.down_proj.weight"] = {kHidden, kUnits};
  }
  Tensors tensors;
  at::Generator generator = at::detail::createCPUGenerator(7);
  for (const auto& [name, size] : sizes)
    tensors[name] = at::randn(size, generator, at::kFloat) * (size.size() == 1 ? 1.0 : 0.3);
  return tensors;
}

void write_directory(const Tensors& tensors, const std::filesystem::path& folder) {
  const Json config = {{"model_type", "sandwich"},      {"vocab_size", kVocabulary},
                       {"hidden_size", kHidden},        {"intermediate_size", kUnits},
                       {"num_attention_heads", kHeads}, {"num_key_value_heads", kKvHeads},
                       {"head_dim", kHeadDim},          {"num_hidden_layers", kLayers}};
  write_file_atomically(folder / "config.json", config.dump());
  std::vector<TensorSpec> specs;
  for (const auto& [name, tensor] : tensors)
    specs.push_back({name, TensorType::kF32, tensor.sizes().vec()});
  ShardedSafetensorsWriter writer(folder, specs, 5'000'000'000);
  for (const auto& [name, tensor] : tensors)
    writer.write(name, {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()});
  writer.finish();
}

at::Tensor plain_norm(const at::Tensor& x, const at::Tensor& weight) {
  return x * (x.square().mean(-1, /*keepdim=*/true) + 1e-3).rsqrt() * weight;
}

// [heads, tokens, head_dim]: rotated, and repeated so that every query head has its own.
at::Tensor plain_heads(const at::Tensor& x, std::int64_t heads, bool turned) {
  at::Tensor h = x.view({x.size(0), heads, kHeadDim}).transpose(0, 1);
  if (turned) {
    const at::Tensor pair = at::arange(kHeadDim / 2, at::kDouble);
    const at::Tensor angle = at::arange(x.size(0), at::kDouble).unsqueeze(1) *
                             at::pow(100.0, -2.0 * pair / double(kHeadDim)).unsqueeze(0);
    const at::Tensor a = h.narrow(-1, 0, kHeadDim / 2),
                     b = h.narrow(-1, kHeadDim / 2, kHeadDim / 2);
    h = at::cat({a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()}, -1);
  }
  return h.repeat_interleave(kHeads / heads, 0);
}

// Log-probabilities of every next token, [tokens, vocabulary].
at::Tensor plain_logp(const Tensors& t, const std::vector<std::int32_t>& ids) {
  const at::Tensor index = at::tensor(at::ArrayRef<std::int32_t>(ids), at::kInt).to(at::kLong);
  const std::int64_t tokens = index.size(0);
  at::Tensor x = t.at("words").index_select(0, index);
  const at::Tensor future = at::ones({tokens, tokens}, at::kBool).triu(1);
  for (int i = 0; i < kLayers; ++i) {
    const auto weight = [&](const char* name) {
      return t.at(fmt::format("blocks.{}.{}.weight", i, name));
    };
    at::Tensor y = plain_norm(x, weight("norm_1"));
    const at::Tensor q = plain_heads(y.matmul(weight("self_attn.q_proj").t()), kHeads, true),
                     k = plain_heads(y.matmul(weight("self_attn.k_proj").t()), kKvHeads, true),
                     v = plain_heads(y.matmul(weight("self_attn.v_proj").t()), kKvHeads, false);
    const at::Tensor mixture =
        (q.matmul(k.transpose(1, 2)) / std::sqrt(double(kHeadDim))).masked_fill(future, -INFINITY);
    y = mixture.softmax(-1).matmul(v).transpose(0, 1).reshape({tokens, kHeads * kHeadDim});
    x = x + plain_norm(y.matmul(weight("self_attn.o_proj").t()), weight("norm_3"));
    y = plain_norm(x, weight("norm_2"));
    const at::Tensor gate = y.matmul(weight("mlp.gate_proj").t());
    y = gate * gate.sigmoid() * y.matmul(weight("mlp.up_proj").t());
    x = x + plain_norm(y.matmul(weight("mlp.down_proj").t()), weight("norm_4"));
  }
  return plain_norm(x, t.at("norm")).matmul(t.at("out").t()).log_softmax(-1);
}

const std::vector<std::int32_t> kIds = {3, 17, 5, 39, 0, 3, 21, 8, 8, 30, 12, 1};

class AddedArchitecture : public ::testing::Test {
 protected:
  AddedArchitecture() {
    for (const auto& [name, tensor] : tensors_)
      exact_[name] = tensor.to(at::kDouble).requires_grad_(true);
    write_directory(tensors_, folder_.path());
  }

  // What load_model() does with a family that is listed.
  CausalLm load(LoadOptions options = {}) const {
    const Json config = parse_json(read_file(folder_ / "config.json"), "config.json");
    CausalLm model(parse_model_shape(kSandwich, config, "config.json"), at::kCPU, at::kFloat);
    load_weights(model, folder_.path(), options);
    return model;
  }

  const testing::TemporaryFolder folder_;
  const Tensors tensors_ = make_tensors();
  Tensors exact_;
};

TEST_F(AddedArchitecture, ComputesItsOwnMaths) {
  const CausalLm model = load({.check_weights = true});
  EXPECT_EQ(model.shape().norm_eps, 1e-3);
  EXPECT_EQ(model.shape().max_positions, 128);
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(suits_dense_forward(model));
  const at::Tensor logp =
      at::linear(model.hidden_states(pack({&kIds, 1}, at::kCPU)), model.head().weight)
          .to(at::kDouble)
          .log_softmax(-1);
  EXPECT_LT((logp - plain_logp(exact_, kIds)).abs().max().item<double>(), 1e-4);
}

TEST_F(AddedArchitecture, HasGradients) {
  CausalLm model = load();
  model.parameters().require_gradients();
  for (const Pass pass : {Pass::kTraining, Pass::kRecomputed}) {
    const at::Tensor hidden = model.hidden_states(pack({&kIds, 1}, at::kCPU), pass);
    at::linear(hidden, model.head().weight).log_softmax(-1).select(1, 3).sum().backward();
    for (auto& [name, tensor] : exact_)
      tensor.mutable_grad().reset();
    plain_logp(exact_, kIds).select(1, 3).sum().backward();
    std::size_t compared = 0;
    for (const auto& [parameter, slice] : model.parameters().stored_tensors()) {
      const at::Tensor expected = exact_.at(slice->name).grad();
      const double scale = expected.abs().max().item<double>();
      const at::Tensor gap = slice->of(parameter->value.grad()).to(at::kDouble) - expected;
      EXPECT_LT(gap.abs().max().item<double>(), 1e-4 * scale + 1e-6) << slice->name;
      ++compared;
    }
    EXPECT_EQ(compared, tensors_.size());
    model.parameters().drop_gradients();
  }
}

TEST_F(AddedArchitecture, IsSavedUnderItsNames) {
  const CausalLm model = load();
  const testing::TemporaryFolder copy;
  save_model(model, folder_.path(), copy.path(), at::kFloat);
  const SafetensorsFile file(copy / "model.safetensors");
  EXPECT_EQ(file.tensors().size(), tensors_.size());
  for (const auto& [name, tensor] : tensors_) {
    const SafetensorsTensor* saved = file.find(name);
    ASSERT_NE(saved, nullptr) << name;
    ASSERT_EQ(saved->data.size(), tensor.nbytes());
    EXPECT_EQ(std::memcmp(saved->data.data(), tensor.const_data_ptr(), tensor.nbytes()), 0) << name;
  }
}

TEST_F(AddedArchitecture, IsSampledAndScored) {
  const CausalLm model = load();
  const RolloutRequest request{kIds, 2, 0};
  const SampleBatch batch = RolloutEngine().generate(model, {&request, 1}, {.max_new_tokens = 20});
  ASSERT_EQ(batch.groups.size(), 1u);
  ASSERT_EQ(batch.groups[0].samples.size(), 2u);
  const at::NoGradGuard no_grad;
  for (const Response& sample : batch.groups[0].samples) {
    std::vector<std::int32_t> whole = kIds;
    whole.insert(whole.end(), sample.ids.begin(), sample.ids.end());
    const at::Tensor logp = plain_logp(exact_, whole);
    const ScoreRequest scored{kIds, sample.ids};
    const std::vector<TokenScores> scores = score(model, {&scored, 1});
    ASSERT_EQ(sample.ids.size(), 20u);
    for (std::size_t i = 0; i < sample.ids.size(); ++i) {
      const auto row = static_cast<std::int64_t>(kIds.size() + i) - 1;
      const double expected = logp[row][sample.ids[i]].item<double>();
      EXPECT_NEAR(sample.raw_logp[i], expected, 1e-3) << i;
      EXPECT_NEAR(scores[0].logp[i], expected, 1e-3) << i;
    }
  }
}

TEST(Architectures, OneThatIsNotListedIsUnknown) {
  EXPECT_THAT(testing::error_of([] {
                parse_model_shape({{"model_type", "sandwich"}}, "config.json");
              }),
              AllOf(HasSubstr("config.json: unknown model_type \"sandwich\"; known: "),
                    HasSubstr("llama, olmo3"), HasSubstr("qwen3, qwen3_moe")));
}

}  // namespace
}  // namespace antisd::inline inference
