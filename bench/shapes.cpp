#ifdef ANTISD_TORCH

#include "bench/shapes.h"

#include "core/error.h"

namespace antisd::bench {

ModelShape named_shape(const std::string& name) {
  const auto qwen3 = [](int hidden, int layers, int heads, int kv_heads, int intermediate,
                        bool tied) -> Json {
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
            {"max_position_embeddings", 40'960}};
  };
  Json config;
  if (name == "qwen3-0.6b") {
    config = qwen3(1024, 28, 16, 8, 3072, true);
  } else if (name == "qwen3-4b") {
    config = qwen3(2560, 36, 32, 8, 9728, true);
  } else if (name == "qwen3-8b") {
    config = qwen3(4096, 36, 32, 8, 12'288, false);
  } else if (name == "qwen3-30b-a3b") {
    config = qwen3(2048, 48, 32, 4, 6144, false);
    config.update({{"model_type", "qwen3_moe"},
                   {"num_experts", 128},
                   {"num_experts_per_tok", 8},
                   {"moe_intermediate_size", 768},
                   {"norm_topk_prob", true}});
  } else if (name == "olmo3-7b") {
    config = qwen3(4096, 32, 32, 32, 11'008, false);
    config.update({{"model_type", "olmo3"},
                   {"vocab_size", 100'278},
                   {"sliding_window", 4096},
                   {"rope_theta", 500'000}});
  } else if (name == "tiny") {
    config = qwen3(192, 4, 6, 6, 512, true);
    config.update({{"vocab_size", 512}, {"head_dim", 32}});
  } else {
    throw InputError(
        "unknown shape '" + name + "'",
        {.remedy = "known: qwen3-0.6b, qwen3-4b, qwen3-8b, qwen3-30b-a3b, olmo3-7b, tiny"});
  }
  return parse_model_shape(config, name);
}

}  // namespace antisd::bench

#endif
