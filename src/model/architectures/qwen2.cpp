// Qwen2 and Qwen2.5: Llama's layer with biases of queries, keys and values, whatever config.json
// says about them.
#include "model/architecture.h"

namespace antisd::inline model {
namespace {

void read_qwen2_biases(const ConfigFields&, ModelShape& shape) {
  shape.qkv_bias = true;
}

}  // namespace

const ArchitectureSpec& qwen2_architecture() {
  const ArchitectureSpec& llama = llama_architecture();
  static const ArchitectureSpec spec = {
      .model_type = "qwen2",
      .kv_heads = 32,
      .windows = WindowRule{.slides = slides_from_max_window_layers},
      .read_biases = read_qwen2_biases,
      .parameters = llama.parameters,
      .layer = llama.layer,
      .panel_form = llama.panel_form};
  return spec;
}

}  // namespace antisd::inline model
