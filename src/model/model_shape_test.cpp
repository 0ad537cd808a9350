#include "model/model_shape.h"

#include <gmock/gmock.h>

#include "core/testing.h"
#include "io/atomic_file.h"
#include "io/safetensors_writer.h"
#include "model/rope_settings.h"
#include "model/weights.h"

namespace antisd {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;

Json small_config() {
  return {{"model_type", "qwen3"},
          {"vocab_size", 32},
          {"hidden_size", 16},
          {"intermediate_size", 24},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"head_dim", 8},
          {"num_hidden_layers", 2},
          {"tie_word_embeddings", true},
          {"max_position_embeddings", 64}};
}

// Recorded with transformers: real settings and odd ones (testdata/model/README.md).
TEST(RopeSettings, FrequenciesEqualTransformers) {
  const std::filesystem::path file = testing::fixture("model/rope.json");
  const Json entries = parse_json(read_file(file), file.string());
  ASSERT_EQ(entries.size(), 16u);
  for (const Json& entry : entries) {
    const Json& config = entry["config"];
    ModelShape shape;
    shape.architecture =
        config["model_type"] == "olmo3" ? Architecture::kOlmo3 : Architecture::kQwen3;
    shape.max_positions = config["max_position_embeddings"];
    const RopeSettingsPair pair = read_rope_settings(config, shape, "rope.json");
    const RopeSettings& rope =
        entry["layer_type"] == "sliding_attention" ? pair.sliding : pair.full;
    const std::int64_t head_dim = 2 * static_cast<std::int64_t>(entry["inv_freq"].size());
    const std::vector<double> frequencies = rope_frequencies(rope, head_dim);
    EXPECT_NEAR(rope.attention_factor, entry["attention_scaling"].get<double>(), 1e-6)
        << entry["name"];
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
      const double expected = entry["inv_freq"][i];
      EXPECT_NEAR(frequencies[i], expected, 2e-6 * expected) << entry["name"] << " " << i;
    }
  }
}

TEST(ModelShape, RefusesWhatItDoesNotUnderstandByName) {
  const auto refused = [](const char* field, const Json& value) {
    Json config = small_config();
    config[field] = value;
    return error_of([&] { parse_model_shape(config, "config.json"); });
  };
  EXPECT_THAT(refused("model_type", "mamba"),
              AllOf(HasSubstr("config.json: unknown model_type"), HasSubstr("olmo3")));
  EXPECT_THAT(refused("hidden_act", "gelu"), HasSubstr("'hidden_act' is \"gelu\""));
  EXPECT_THAT(refused("quantization_config", {{"bits", 4}}), HasSubstr("quantization_config"));
  EXPECT_THAT(refused("num_key_value_heads", 3), HasSubstr("a divisor of the 4 heads"));
  EXPECT_THAT(refused("vocab_size", nullptr), HasSubstr("'vocab_size' is missing"));
  EXPECT_THAT(refused("hidden_size", -4), HasSubstr("'hidden_size' is -4"));
  EXPECT_THAT(refused("num_hidden_layers", 1'000'000'000), HasSubstr("at most 10000"));
  EXPECT_THAT(refused("head_dim", 7), HasSubstr("even"));
  EXPECT_THAT(refused("rope_scaling", {{"rope_type", "longrope"}, {"factor", 2}}),
              HasSubstr("longrope"));
  EXPECT_THAT(refused("rope_scaling", {{"rope_type", "yarn"}}), HasSubstr("lack 'factor'"));
  EXPECT_THAT(refused("layer_types", {"sliding_attention", "full_attention"}),
              HasSubstr("use_sliding_window"));
  EXPECT_THAT(refused("attention_dropout", 0.1), HasSubstr("attention_dropout"));
}

TEST(ModelShape, ReadsTheRealConfigurations) {
  const std::filesystem::path models = testing::shared_data("models");
  ANTISD_NEEDS_SHARED(models);
  const ModelShape qwen8 = read_model_shape(models / "qwen/qwen3-8b_config.json");
  EXPECT_NEAR(static_cast<double>(qwen8.parameter_count()), 8.19e9, 0.01e9);
  EXPECT_EQ(qwen8.layers[0].rope.theta, 1e6);
  const ModelShape resaved = read_model_shape(models / "qwen/qwen3-8b_config_resaved.json");
  EXPECT_EQ(resaved.parameter_count(), qwen8.parameter_count());
  const ModelShape qwen4 = read_model_shape(models / "qwen/qwen3-4b-instruct-2507_config.json");
  EXPECT_NEAR(static_cast<double>(qwen4.parameter_count()), 4.02e9, 0.01e9);
  EXPECT_TRUE(qwen4.tied_head);
  const ModelShape moe = read_model_shape(models / "qwen/qwen3-30b-a3b_config.json");
  EXPECT_NEAR(static_cast<double>(moe.parameter_count()), 30.5e9, 0.1e9);
  EXPECT_NEAR(static_cast<double>(moe.active_parameter_count()), 3.35e9, 0.1e9);
  EXPECT_TRUE(moe.normalise_experts);
  const ModelShape olmo = read_model_shape(models / "olmo3/olmo3-7b-think_config.json");
  EXPECT_NEAR(static_cast<double>(olmo.parameter_count()), 7.3e9, 0.1e9);
  EXPECT_EQ(olmo.layers[0].window, 4096);
  EXPECT_EQ(olmo.layers[3].window, 0);
  EXPECT_EQ(olmo.layers[0].rope.kind, RopeSettings::Kind::kDefault);
  EXPECT_EQ(olmo.layers[3].rope.kind, RopeSettings::Kind::kYarn);
}

TEST(Weights, AllThatDoesNotFitIsListedAtOnce) {
  const testing::TemporaryFolder folder;
  CausalLm model(parse_model_shape(small_config(), "x"), at::kCPU, at::kFloat);
  initialise_randomly(model, 1);
  write_file_atomically(folder / "config.json", small_config().dump());
  save_model(model, folder.path(), folder.path(), at::kFloat);
  EXPECT_NO_THROW(load_model(folder.path(), at::kCPU, at::kFloat, {.check_weights = true}));

  Json wider = small_config();
  wider["intermediate_size"] = 32;
  wider["num_hidden_layers"] = 3;
  write_file_atomically(folder / "config.json", wider.dump());
  EXPECT_THAT(error_of([&] { load_model(folder.path(), at::kCPU, at::kFloat); }),
              AllOf(HasSubstr("missing: model.layers.2."), HasSubstr("of another shape: "),
                    HasSubstr("model.layers.0.mlp.gate_proj.weight is [24, 16], not [32, 16]")));
  Json fewer = small_config();
  fewer["num_hidden_layers"] = 1;
  write_file_atomically(folder / "config.json", fewer.dump());
  EXPECT_THAT(error_of([&] { load_model(folder.path(), at::kCPU, at::kFloat); }),
              HasSubstr("that the model does not have: model.layers.1."));
}

TEST(Weights, NanIsFoundByNameWhenAsked) {
  const testing::TemporaryFolder folder;
  CausalLm model(parse_model_shape(small_config(), "x"), at::kCPU, at::kFloat);
  initialise_randomly(model, 1);
  for (Parameter& parameter : model.parameters()) {
    if (parameter.name == "layers.1.down") parameter.value[3][5] = std::nan("");
  }
  write_file_atomically(folder / "config.json", small_config().dump());
  save_model(model, folder.path(), folder.path(), at::kFloat);
  EXPECT_NO_THROW(load_model(folder.path(), at::kCPU, at::kFloat));
  EXPECT_THAT(
      error_of([&] { load_model(folder.path(), at::kCPU, at::kFloat, {.check_weights = true}); }),
      HasSubstr("model.layers.1.mlp.down_proj.weight holds NaN"));
  std::filesystem::remove(folder / "model.safetensors");
  EXPECT_THAT(error_of([&] { load_model(folder.path(), at::kCPU, at::kFloat); }),
              HasSubstr("safetensors"));
}

}  // namespace
}  // namespace antisd
