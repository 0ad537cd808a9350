#ifdef ANTISD_TORCH

#include "bench/shapes.h"

#include <map>

#include "core/error.h"
#include "plan/model_names.h"

namespace antisd::bench {
namespace {

ModelShape tiny_shape() {
  return parse_model_shape({{"model_type", "qwen3"},
                            {"vocab_size", 512},
                            {"hidden_size", 192},
                            {"num_hidden_layers", 4},
                            {"num_attention_heads", 6},
                            {"num_key_value_heads", 6},
                            {"head_dim", 32},
                            {"intermediate_size", 512},
                            {"tie_word_embeddings", true},
                            {"rope_theta", 1'000'000},
                            {"max_position_embeddings", 40'960}},
                           "tiny");
}

}  // namespace

ModelShape named_shape(const std::string& name) {
  static const std::map<std::string, std::string> kModels = {
      {"qwen3-0.6b", "Qwen3-0.6B"},       {"qwen3-4b", "Qwen3-4B"},
      {"qwen3-8b", "Qwen3-8B"},           {"qwen3-30b-a3b", "Qwen3-30B-A3B"},
      {"olmo3-7b", "Olmo-3-7B-Instruct"},
  };
  if (name == "tiny") return tiny_shape();
  const auto known = kModels.find(name);
  if (known != kModels.end()) return *known_shape(known->second);
  throw InputError(
      "unknown shape '" + name + "'",
      {.remedy = "known: qwen3-0.6b, qwen3-4b, qwen3-8b, qwen3-30b-a3b, olmo3-7b, tiny"});
}

}  // namespace antisd::bench

#endif
