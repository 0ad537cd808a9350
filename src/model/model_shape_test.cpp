#include "model/model_shape.h"

#include <gmock/gmock.h>

#include "core/testing.h"
#include "io/atomic_file.h"
#include "model/architecture.h"
#include "model/rope_settings.h"
#include "model/testing.h"
#include "model/weights.h"

namespace antisd::inline model {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using testing::small_config;

// Recorded with transformers: real settings and odd ones (testdata/model/README.md).
TEST(RopeSettings, FrequenciesEqualTransformers) {
  const std::filesystem::path file = testing::fixture("model/rope.json");
  const Json entries = parse_json(read_file(file), file.string());
  ASSERT_EQ(entries.size(), 16u);
  for (const Json& entry : entries) {
    const Json& config = entry["config"];
    ModelShape shape;
    shape.architecture = find_architecture(config["model_type"] == "olmo3" ? "olmo3" : "qwen3");
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

TEST(ModelShape, RefusesSizesThatNoModelHas) {
  Json config = small_config();
  for (const char* field : {"vocab_size", "hidden_size", "intermediate_size", "num_attention_heads",
                            "num_key_value_heads", "head_dim"}) {
    config[field] = std::int64_t{1} << 40;
  }
  EXPECT_THAT(error_of([&] { parse_model_shape(config, "config.json"); }),
              HasSubstr("config.json: the sizes make a model of about"));
}

// From the fields of config.json, part by part as the model cards describe the models.
std::int64_t count_by_hand(const Json& c, std::int64_t experts_counted) {
  const auto number = [&](const char* name) { return c[name].get<std::int64_t>(); };
  const bool olmo = c["model_type"] == "olmo3", moe = c["model_type"] == "qwen3_moe";
  const std::int64_t width = number("hidden_size"), heads = number("num_attention_heads");
  const std::int64_t size = c.contains("head_dim") ? number("head_dim") : width / heads;
  const std::int64_t queries = heads * size, keys = number("num_key_value_heads") * size;
  const std::int64_t embedding = number("vocab_size") * width;
  const std::int64_t attention = width * queries + 2 * width * keys + queries * width;
  const std::int64_t norms = 2 * width + (olmo ? queries + keys : 2 * size);
  const std::int64_t unit = moe ? number("num_experts") * width +
                                      experts_counted * 3 * width * number("moe_intermediate_size")
                                : 3 * width * number("intermediate_size");
  const bool tied = c["tie_word_embeddings"].get<bool>();
  return embedding + (tied ? 0 : embedding) + width +
         number("num_hidden_layers") * (attention + norms + unit);
}

TEST(ModelShape, RealModelsHaveThePublishedSizes) {
  const std::filesystem::path models = testing::shared_data("models");
  ANTISD_NEEDS_SHARED(models);
  struct Published {
    const char* file;
    std::int64_t parameters;  // of the released weights
  };
  for (const auto& [name, parameters] : {Published{"qwen/qwen3-8b_config.json", 8'190'735'360},
                                         {"qwen/qwen3-8b_config_resaved.json", 8'190'735'360},
                                         {"qwen/qwen3-4b-instruct-2507_config.json", 4'022'468'096},
                                         {"qwen/qwen3-30b-a3b_config.json", 30'532'122'624},
                                         {"olmo3/olmo3-7b-think_config.json", 7'298'011'136},
                                         {"olmo3/olmo3-7b-instruct_config.json", 7'298'011'136}}) {
    const ModelShape shape = read_model_shape(models / name);
    const Json config = parse_json(read_file(models / name), name);
    const bool moe = config["model_type"] == "qwen3_moe";
    EXPECT_EQ(shape.parameter_count(), parameters) << name;
    EXPECT_EQ(count_by_hand(config, moe ? config["num_experts"].get<std::int64_t>() : 0),
              parameters)
        << name;
    EXPECT_EQ(shape.active_parameter_count(),
              count_by_hand(config, moe ? config["num_experts_per_tok"].get<std::int64_t>() : 0))
        << name;
  }
}

TEST(ModelShape, ReadsTheRealConfigurations) {
  const std::filesystem::path models = testing::shared_data("models");
  ANTISD_NEEDS_SHARED(models);
  const ModelShape qwen8 = read_model_shape(models / "qwen/qwen3-8b_config.json");
  EXPECT_EQ(qwen8.layers[0].rope.theta, 1e6);
  EXPECT_FALSE(qwen8.tied_head);
  EXPECT_EQ(qwen8.max_positions, 40'960);
  const ModelShape qwen4 = read_model_shape(models / "qwen/qwen3-4b-instruct-2507_config.json");
  EXPECT_EQ(qwen4.layers[0].rope.theta, 5e6);
  EXPECT_EQ(qwen4.head_dim, 128);  // not hidden / heads
  EXPECT_TRUE(qwen4.tied_head);
  const ModelShape moe = read_model_shape(models / "qwen/qwen3-30b-a3b_config.json");
  EXPECT_NEAR(static_cast<double>(moe.active_parameter_count()), 3.3e9, 0.06e9);
  EXPECT_EQ(moe.experts, 128);
  EXPECT_EQ(moe.experts_per_token, 8);
  EXPECT_TRUE(moe.normalise_experts);
  for (const LayerShape& layer : moe.layers)
    EXPECT_TRUE(layer.sparse);
  for (const char* name :
       {"olmo3/olmo3-7b-think_config.json", "olmo3/olmo3-7b-instruct_config.json"}) {
    const ModelShape olmo = read_model_shape(models / name);
    ASSERT_EQ(olmo.layers.size(), 32u);
    for (std::size_t i = 0; i < olmo.layers.size(); ++i) {
      const bool full = i % 4 == 3;
      EXPECT_EQ(olmo.layers[i].window, full ? 0 : 4096);
      EXPECT_EQ(olmo.layers[i].rope.kind,
                full ? RopeSettings::Kind::kYarn : RopeSettings::Kind::kDefault);
    }
  }
}

// Every model directory with weights: config.json implies as many parameters as the weights have.
TEST(ModelShape, RealWeightsHaveAsManyParametersAsTheirConfigurations) {
  const std::filesystem::path weights = testing::shared_data("weights");
  ANTISD_NEEDS_SHARED(weights);
  int models = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(weights)) {
    if (entry.path().filename() != "config.json") continue;
    const std::filesystem::path folder = entry.path().parent_path();
    if (folder.filename() == "200") {  // its config.json is that of a wider model
      EXPECT_THAT(error_of([&] { load_model(folder, at::kCPU, at::kFloat); }),
                  HasSubstr("model.layers.0.mlp.gate_proj.weight is [6, 3], not [9, 3]"));
      continue;
    }
    const CausalLm model = load_model(folder, at::kCPU, at::kFloat, {.check_weights = true});
    std::int64_t count = 0;
    for (const Parameter& parameter : model.parameters())
      count += parameter.value.numel();
    EXPECT_EQ(model.shape().parameter_count(), count) << folder;
    ++models;
  }
  EXPECT_GE(models, 11);
}

TEST(ModelShape, CountsEveryParameterOfEveryArchitecture) {
  for (const std::string& name : testing::recorded_models()) {
    const CausalLm model(read_model_shape(testing::fixture("model") / name / "config.json"),
                         at::kCPU, at::kFloat);
    std::int64_t count = 0;
    for (const Parameter& parameter : model.parameters())
      count += parameter.value.numel();
    EXPECT_EQ(model.shape().parameter_count(), count) << name;
  }
}

}  // namespace
}  // namespace antisd::inline model
