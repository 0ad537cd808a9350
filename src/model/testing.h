// For tests of models: the config of a model with a few thousand weights, and the recorded models.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/testing.h"
#include "io/json.h"

namespace antisd::testing {

inline Json small_config() {
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

// The models of testdata/model for which transformers' results are recorded.
inline std::vector<std::string> recorded_models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fixture("model")))
    if (exists(entry.path() / "expected.safetensors"))
      names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace antisd::testing
