// For tests of models: a config of a few thousand weights.
#pragma once

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

}  // namespace antisd::testing
