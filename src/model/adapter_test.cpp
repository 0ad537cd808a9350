// Adapters against peft on recorded directories (testdata/adapter,
// tools/record_adapter_fixtures.py), against full gradients, and against merged weights.
#include <fstream>

#include <gmock/gmock.h>

#include "core/testing.h"
#include "io/atomic_file.h"
#include "io/safetensors.h"
#include "model/adapted_shape.h"
#include "model/adapter_files.h"
#include "model/file_tensors.h"
#include "model/testing.h"
#include "model/weights.h"
#include "ops/token_scores.h"

namespace antisd::inline model {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kAllTargets = LoraConfig().targets;

// The sequences of a recorded model, and the sum over them whose gradients are recorded.
struct Recorded {
  explicit Recorded(const std::string& name)
      : file(testing::fixture("model") / name / "expected.safetensors") {
    const at::Tensor ids = of("ids"), offsets = of("sequence_offsets");
    for (std::int64_t i = 0; i + 1 < offsets.size(0); ++i) {
      std::vector<std::int32_t>& sequence = sequences.emplace_back();
      for (auto t = offsets[i].item<std::int64_t>(); t < offsets[i + 1].item<std::int64_t>(); ++t)
        sequence.push_back(ids[t].item<std::int32_t>());
    }
  }
  at::Tensor of(const std::string& name) const {
    const SafetensorsTensor& tensor = *file.find(name);
    const auto type = tensor.type == TensorType::kI64 ? at::kLong : at::kFloat;
    at::Tensor copy = at::empty(tensor.shape, at::TensorOptions().dtype(type));
    std::memcpy(copy.mutable_data_ptr(), tensor.data.data(), tensor.data.size());
    return copy;
  }

  at::Tensor hidden(const CausalLm& model, Pass pass) const {
    const PackedBatch batch = pack(sequences, at::kCPU, {.share = false});
    std::vector<std::int64_t> rows;
    for (const auto& sequence : batch.rows)
      rows.insert(rows.end(), sequence.begin(), sequence.end());
    return model.hidden_states(batch, pass)
        .index_select(0, at::tensor(at::ArrayRef<std::int64_t>(rows), at::kLong));
  }
  at::Tensor logits(const CausalLm& model, Pass pass = Pass::kInference) const {
    return at::linear(hidden(model, pass), model.head().weight);
  }
  // Leaves gradients behind.
  void go_back(const CausalLm& model, Pass pass) const {
    const at::Tensor logp = logits(model, pass).log_softmax(-1), weights = of("loss_weights");
    at::Tensor sum = at::zeros({});
    std::int64_t row = 0;
    for (const auto& sequence : sequences) {
      for (std::size_t i = 0; i + 1 < sequence.size(); ++i) {
        const at::Tensor all = logp[row + static_cast<std::int64_t>(i)];
        sum = sum + weights[row + static_cast<std::int64_t>(i)] * all[sequence[i + 1]] -
              0.1 * (all.exp() * all).sum();
      }
      row += static_cast<std::int64_t>(sequence.size());
    }
    sum.backward();
  }

  SafetensorsFile file;
  std::vector<std::vector<std::int32_t>> sequences;
};

double most_apart(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

void drop_gradients_of(CausalLm& model) {
  for (Parameter& parameter : model.parameters())
    parameter.value.mutable_grad().reset();
}

// A recorded model with random adapters.
CausalLm adapted_model(const std::string& name, LoraShape lora) {
  const std::filesystem::path folder = testing::fixture("model") / name;
  ModelShape shape = read_model_shape(folder / "config.json");
  shape.lora = std::move(lora);
  CausalLm model(shape, at::kCPU, at::kFloat);
  load_weights(model, folder);
  at::Generator generator = at::detail::createCPUGenerator(7);
  for (Parameter& parameter : model.parameters()) {
    if (parameter.spec.is_adapter())
      parameter.value.copy_(at::randn(parameter.spec.sizes, generator, at::kFloat) * 0.3);
  }
  return model;
}

std::vector<std::string> recorded_adapters() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(testing::fixture("adapter")))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

class PeftAdapter : public ::testing::TestWithParam<std::string> {
 protected:
  const std::filesystem::path folder_ = testing::fixture("adapter") / GetParam();
  const std::filesystem::path base_ = testing::fixture("model") / GetParam();
  const Recorded recorded_{GetParam()};
  const SafetensorsFile expected_{folder_ / "expected.safetensors"};
  CausalLm model_ = load_model(folder_, at::kCPU, at::kFloat, {.base = base_});
};

TEST_P(PeftAdapter, HasTheLogitsOfPeft) {
  const at::NoGradGuard no_grad;
  const at::Tensor reference = tensor_of(*expected_.find("logits"));
  EXPECT_GT(most_apart(recorded_.of("logits"), reference), 0.1);  // the adapter does something
  EXPECT_LT(most_apart(recorded_.logits(model_), reference), 1e-4);
  EXPECT_LT(most_apart(recorded_.logits(model_, Pass::kTraining), reference), 1e-4);
}

// Matrices of smaller ranks are padded here, and scales of their own are in B: neither gets more.
TEST_P(PeftAdapter, HasTheGradientsOfPeft) {
  const AdapterConfig adapter = read_adapter_config(folder_);
  const auto expected = [&](const WeightSlice& slice, bool is_up) {
    at::Tensor padded = at::zeros(slice.sizes);
    const SafetensorsTensor* found = expected_.find("grad." + slice.name);
    if (found == nullptr) return padded;
    const std::string module = slice.name.substr(0, slice.name.rfind(".lora_"));
    padded.narrow(0, 0, found->shape[0]).narrow(1, 0, found->shape[1]).copy_(tensor_of(*found));
    return is_up ? padded / adapter.scales.at(module) : padded;
  };
  model_.parameters().require_gradients();
  for (const Pass pass : {Pass::kTraining, Pass::kRecomputed}) {
    recorded_.go_back(model_, pass);
    int compared = 0;
    for (const auto& [parameter, slice] : model_.parameters().stored_tensors()) {
      const at::Tensor& gradient = parameter->value.grad();
      ASSERT_EQ(gradient.defined(), parameter->spec.is_adapter()) << parameter->name();
      if (!gradient.defined()) continue;
      const at::Tensor reference = expected(*slice, parameter->spec.kind == ParameterKind::kLoraB);
      const double size = std::max(1.0, reference.abs().max().item<double>());
      EXPECT_LT(most_apart(slice->of(gradient), reference), 1e-4 * size) << slice->name;
      if (reference.count_nonzero().item<std::int64_t>() > 0) ++compared;
    }
    EXPECT_EQ(compared + 1, std::ssize(expected_.tensors()));
    drop_gradients_of(model_);
  }
}

TEST_P(PeftAdapter, WrittenAndReadIsTheSame) {
  const testing::TemporaryFolder folder;
  save_adapter(model_, base_, folder.path());
  const AdapterConfig read = read_adapter_config(folder.path());
  EXPECT_EQ(read.base, base_);
  EXPECT_EQ(read.lora, model_.shape().lora);
  const CausalLm again = load_model(folder.path(), at::kCPU, at::kFloat);
  for (const Parameter& parameter : model_.parameters())
    EXPECT_TRUE(again.parameters().at(parameter.name()).value.equal(parameter.value));
}

// peft's own files, but for what it keeps about itself. tools/check_adapters.py opens ours there.
TEST_P(PeftAdapter, IsWrittenAsPeftWrites) {
  const testing::TemporaryFolder folder;
  save_adapter(model_, base_, folder.path());
  const auto config_of = [](const std::filesystem::path& directory) {
    const std::filesystem::path file = directory / "adapter_config.json";
    return parse_json(read_file(file), file.string());
  };
  const Json own = config_of(folder.path()), theirs = config_of(folder_);
  for (const char* key : {"peft_type", "task_type", "bias", "fan_in_fan_out", "lora_dropout",
                          "use_dora", "modules_to_save"})
    EXPECT_EQ(own.at(key), theirs.at(key)) << key;
  const SafetensorsFile written(folder / "adapter_model.safetensors"),
      recorded(folder_ / "adapter_model.safetensors");
  const bool plain = theirs.at("rank_pattern").empty() && theirs.at("alpha_pattern").empty() &&
                     !theirs.at("use_rslora").get<bool>();
  if (!plain) return;  // ranks are made equal, and scales one: other files with the same sums
  const auto names = [](const Json& list) {
    auto all = list.get<std::vector<std::string>>();
    std::ranges::sort(all);
    return all;
  };
  EXPECT_EQ(names(own.at("target_modules")), names(theirs.at("target_modules")));
  EXPECT_EQ(own.at("r"), theirs.at("r"));
  EXPECT_EQ(own.at("lora_alpha"), theirs.at("lora_alpha"));
  ASSERT_EQ(written.tensors().size(), recorded.tensors().size());
  for (const SafetensorsTensor& tensor : recorded.tensors()) {
    const SafetensorsTensor* found = written.find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_TRUE(tensor_of(*found).equal(tensor_of(tensor))) << tensor.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PeftAdapter, ::testing::ValuesIn(recorded_adapters()),
                         [](const auto& info) { return info.param; });

// With A = 1 and B = 0 the gradient of B is scale times the weight's own, whatever the projection.
TEST(Adapters, AtFullRankFollowTheWholeGradient) {
  const std::string name = "qwen3_gqa_tied";
  const Recorded recorded(name);
  CausalLm whole = load_model(testing::fixture("model") / name, at::kCPU, at::kFloat);
  whole.parameters().require_gradients();
  recorded.go_back(whole, Pass::kTraining);
  const std::map<std::int64_t, std::vector<std::string>> by_inputs = {
      {16, {"q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"}},
      {32, {"o_proj"}},
      {24, {"down_proj"}}};
  int compared = 0;
  for (const auto& [inputs, targets] : by_inputs) {
    CausalLm model =
        adapted_model(name, {.rank = inputs, .alpha = 2.0 * inputs, .targets = targets});
    for (Parameter& parameter : model.parameters()) {
      if (parameter.spec.kind == ParameterKind::kLoraB) parameter.value.zero_();
      if (parameter.spec.kind != ParameterKind::kLoraA) continue;
      for (const WeightSlice& slice : parameter.spec.slices)
        slice.of(parameter.value).copy_(at::eye(inputs));
    }
    model.parameters().require_gradients();
    recorded.go_back(model, Pass::kRecomputed);
    for (const auto& [weight, slice] : whole.parameters().stored_tensors()) {
      for (const auto& [b, b_slice] : model.parameters().stored_tensors()) {
        if (b_slice->name !=
            "base_model.model." + slice->name.substr(0, slice->name.size() - 7) + ".lora_B.weight")
          continue;
        const at::Tensor full = slice->of(weight->value.grad()).flatten(),
                         own = b_slice->of(b->value.grad()).flatten();
        EXPECT_GT(at::cosine_similarity(full, own, 0).item<double>(), 0.9999) << slice->name;
        EXPECT_NEAR((own.norm() / full.norm()).item<double>(), 2, 1e-3) << slice->name;
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 7 * 2);
}

TEST(Adapters, MergedIsAdapted) {
  const at::NoGradGuard no_grad;
  for (const std::string& name : testing::recorded_models()) {
    const Recorded recorded(name);
    CausalLm model =
        adapted_model(name, {.rank = 5, .alpha = 4, .targets = kAllTargets, .experts = true});
    const at::Tensor adapted = recorded.logits(model);
    const double size = adapted.abs().max().item<double>();
    EXPECT_LT(most_apart(recorded.logits(model, Pass::kTraining), adapted), 1e-5 * size) << name;
    merge_adapters(model);
    const testing::TemporaryFolder folder;
    save_model(model, testing::fixture("model") / name, folder.path(), at::kFloat);
    const CausalLm merged = load_model(folder.path(), at::kCPU, at::kFloat);
    EXPECT_FALSE(merged.shape().lora);
    EXPECT_LT(most_apart(recorded.logits(merged), adapted), 1e-4) << name;
    EXPECT_GT(most_apart(recorded.of("logits"), adapted), 0.1) << name;
  }
}

// On a CPU, however many layers are kept.
TEST(Adapters, RecomputedLayersHaveTheBitsOfKeptOnes) {
  for (const std::string& name : testing::recorded_models()) {
    const Recorded recorded(name);
    CausalLm model =
        adapted_model(name, {.rank = 5, .alpha = 4, .targets = kAllTargets, .experts = true});
    model.parameters().require_gradients();
    std::vector<at::Tensor> kept;
    for (const Pass pass : {Pass::kTraining, Pass::kRecomputed}) {
      recorded.go_back(model, pass);
      std::size_t i = 0;
      for (const Parameter& parameter : model.parameters()) {
        if (!parameter.spec.trainable) continue;
        if (pass == Pass::kTraining) {
          kept.push_back(parameter.value.grad().clone());
        } else {
          EXPECT_TRUE(parameter.value.grad().equal(kept[i++])) << name << " " << parameter.name();
        }
      }
      drop_gradients_of(model);
    }
    EXPECT_FALSE(kept.empty());
  }
}

TEST(Adapters, OffTheyAreTheBaseInTheSameMemory) {
  const at::NoGradGuard no_grad;
  const std::string name = "qwen3_moe_mixed";
  const Recorded recorded(name);
  const CausalLm base = load_model(testing::fixture("model") / name, at::kCPU, at::kFloat);
  CausalLm model = adapted_model(name, {.rank = 2, .alpha = 4, .targets = kAllTargets});
  const CausalLm off(model, std::nullopt, model.dtype());
  EXPECT_TRUE(recorded.logits(off).equal(recorded.logits(base)));
  for (const Parameter& parameter : off.parameters()) {
    EXPECT_FALSE(parameter.spec.is_adapter());
    EXPECT_EQ(parameter.value.data_ptr(), model.parameters().at(parameter.name()).value.data_ptr());
  }
  // Adapters of their own that start like PEFT's change nothing yet.
  CausalLm other(model, model.shape().lora, model.dtype());
  initialise_adapters(other, /*seed=*/1);
  EXPECT_TRUE(recorded.logits(other).equal(recorded.logits(base)));
  EXPECT_FALSE(recorded.logits(model).equal(recorded.logits(base)));
  const at::Tensor& a = other.parameters().at("layers.0.qkv_lora_a").value;
  EXPECT_LE(a.abs().max().item<double>(), 0.25);  // 1 / sqrt(16)
  EXPECT_NEAR(a.square().mean().item<double>(), 0.0625 / 3, 0.008);
}

TEST(Adapters, TheSettingsAreChecked) {
  const auto shape = [](const std::string& name) {
    return read_model_shape(testing::fixture("model") / name / "config.json");
  };
  const ModelShape dense = shape("qwen3_gqa_tied"), sparse = shape("qwen3_moe");
  EXPECT_FALSE(adapted_shape(dense, {}).lora);
  const auto message = [](const ModelShape& model, const LoraConfig& config) {
    return testing::error_of([&] { adapted_shape(model, config); });
  };
  EXPECT_THAT(message(dense, {.rank = 4, .targets = {"q_porj"}}), HasSubstr("'q_proj'"));
  EXPECT_THAT(message(dense, {.rank = 4, .targets = {"embed_tokens"}}), HasSubstr("down_proj"));
  EXPECT_THAT(message(dense, {.rank = 17}), HasSubstr("more than the 16 of"));
  EXPECT_THAT(message(dense, {.rank = 4, .targets = {}}), HasSubstr("name some"));
  EXPECT_THAT(message(sparse, {.rank = 4, .targets = {"up_proj"}}), HasSubstr("lora.experts"));
  EXPECT_THAT(message(sparse, {.rank = 2, .targets = {"gate"}}), HasSubstr("'gate'"));
  // The experts' only if asked for.
  const auto count = [](const ModelShape& model) { return model.trainable_parameter_count(); };
  const ModelShape attention = adapted_shape(sparse, {.rank = 2}),
                   all = adapted_shape(sparse, {.rank = 2, .experts = true});
  EXPECT_EQ(attention.lora->targets.size(), 4U);
  EXPECT_EQ(count(attention), 2 * 2 * (16 + 32 + 2 * (16 + 16) + 32 + 16));
  EXPECT_EQ(count(all) - count(attention), 2 * 8 * 3 * 2 * (16 + 8));
}

TEST(Adapters, WhatIsNotKnownIsRefusedByName) {
  const std::filesystem::path from = testing::fixture("adapter") / "qwen3_gqa_tied",
                              base = testing::fixture("model") / "qwen3_gqa_tied";
  const testing::TemporaryFolder folder;
  const auto message = [&](const std::string& key, const Json& value) {
    std::filesystem::copy(from, folder.path(), std::filesystem::copy_options::overwrite_existing);
    Json config = parse_json(read_file(from / "adapter_config.json"), "");
    config[key] = value;
    write_file_atomically(folder / "adapter_config.json", config.dump());
    return testing::error_of(
        [&] { load_model(folder.path(), at::kCPU, at::kFloat, {.base = base}); });
  };
  EXPECT_THAT(message("use_dora", true), HasSubstr("use_dora"));
  EXPECT_THAT(message("peft_type", "IA3"), HasSubstr("peft_type"));
  EXPECT_THAT(message("bias", "all"), HasSubstr("bias"));
  EXPECT_THAT(message("modules_to_save", {"lm_head"}), HasSubstr("modules_to_save"));
  EXPECT_THAT(message("init_lora_weights", "pissa_niter_4"), HasSubstr("init_lora_weights"));
  EXPECT_THAT(testing::error_of(
                  [&] { load_model(from, at::kCPU, at::kFloat, {.base = folder / "nowhere"}); }),
              HasSubstr("--base DIR"));
  EXPECT_THAT(testing::error_of([&] {
                load_model(from, at::kCPU, at::kFloat,
                           {.base = testing::fixture("model") / "qwen2_yarn"});
              }),
              HasSubstr("is [32, 4] where the model has [16, 4]"));
}

}  // namespace
}  // namespace antisd::inline model
