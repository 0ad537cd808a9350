#include "plan/model_names.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "hub/cache.h"

namespace antisd::inline plan {
namespace {

namespace fs = std::filesystem;

Json qwen3(int hidden, int layers, int heads, int kv_heads, int intermediate, bool tied) {
  return {{"model_type", "qwen3"},
          {"vocab_size", 151'936},
          {"hidden_size", hidden},
          {"num_hidden_layers", layers},
          {"num_attention_heads", heads},
          {"num_key_value_heads", kv_heads},
          {"head_dim", 128},
          {"intermediate_size", intermediate},
          {"tie_word_embeddings", tied},
          {"rope_theta", 1'000'000},
          {"rms_norm_eps", 1e-6},
          {"max_position_embeddings", 40'960}};
}

Json qwen3_4b_2507() {
  Json config = qwen3(2560, 36, 32, 8, 9728, true);
  config.update({{"rope_theta", 5'000'000}, {"max_position_embeddings", 262'144}});
  return config;
}

Json qwen3_30b_a3b() {
  Json config = qwen3(2048, 48, 32, 4, 6144, false);
  config.update({{"model_type", "qwen3_moe"},
                 {"num_experts", 128},
                 {"num_experts_per_tok", 8},
                 {"moe_intermediate_size", 768},
                 {"norm_topk_prob", true},
                 {"decoder_sparse_step", 1},
                 {"mlp_only_layers", Json::array()}});
  return config;
}

// Three layers with a window, one without, and so on.
Json olmo3_7b() {
  Json layers = Json::array();
  for (int i = 0; i < 32; ++i)
    layers.push_back(i % 4 == 3 ? "full_attention" : "sliding_attention");
  return {{"model_type", "olmo3"},
          {"vocab_size", 100'278},
          {"hidden_size", 4096},
          {"num_hidden_layers", 32},
          {"num_attention_heads", 32},
          {"num_key_value_heads", 32},
          {"intermediate_size", 11'008},
          {"tie_word_embeddings", false},
          {"layer_types", std::move(layers)},
          {"sliding_window", 4096},
          {"rms_norm_eps", 1e-6},
          {"rope_theta", 500'000},
          {"rope_scaling",
           {{"rope_type", "yarn"},
            {"factor", 8.0},
            {"original_max_position_embeddings", 8192},
            {"beta_fast", 32.0},
            {"beta_slow", 1.0},
            {"attention_factor", 1.2079441541679836}}},
          {"max_position_embeddings", 65'536}};
}

std::vector<std::pair<std::string, Json>> all_models() {
  return {{"Qwen3-0.6B", qwen3(1024, 28, 16, 8, 3072, true)},
          {"Qwen3-4B", qwen3(2560, 36, 32, 8, 9728, true)},
          {"Qwen3-4B-Instruct-2507", qwen3_4b_2507()},
          {"Qwen3-8B", qwen3(4096, 36, 32, 8, 12'288, false)},
          {"Qwen3-30B-A3B", qwen3_30b_a3b()},
          {"Olmo-3-7B-Instruct", olmo3_7b()},
          {"Olmo-3-7B-Think", olmo3_7b()}};
}

}  // namespace

std::vector<std::string> known_models() {
  std::vector<std::string> names;
  for (const auto& [name, config] : all_models())
    names.push_back(name);
  return names;
}

std::optional<ModelShape> known_shape(const std::string& model_path) {
  const fs::path path = model_path;
  const std::string name = (path.has_filename() ? path : path.parent_path()).filename().string();
  for (const auto& [known, config] : all_models())
    if (known == name) return parse_model_shape(config, name);
  return std::nullopt;
}

ModelShape shape_of_model(const std::string& model_path) {
  if (model_path.empty()) {
    throw InputError("no model is named",
                     {.where = "model.path", .remedy = "give a Hugging Face model directory"});
  }
  std::error_code ignored;
  std::string name = model_path;
  fs::path folder = model_path;
  if (const auto repo = parse_repo_name(RepoType::kModel, model_path);
      repo && !fs::exists(model_path, ignored)) {
    name = repo->name;
    if (const std::optional<Snapshot> found = find_snapshot(*repo)) folder = found->folder;
  }
  const fs::path config = folder / "config.json";
  if (fs::exists(config, ignored)) return read_model_shape(config);
  if (std::optional<ModelShape> shape = known_shape(name)) return *std::move(shape);
  throw InputError(
      fmt::format("{} is not there, and no model of that name is known", config.string()),
      {.where = "model.path",
       .remedy = fmt::format("known without files: {}", fmt::join(known_models(), ", "))});
}

}  // namespace antisd::inline plan
