// Qwen3: pre-norm; queries and keys normed per head before rotation.
#include "model/architecture.h"

namespace antisd::inline model {
namespace {

void qwen3_parameters(LayerParameters& layer) {
  layer.norm("first_norm", "input_layernorm");
  layer.norm("second_norm", "post_attention_layernorm");
  layer.attention(QkNorm::kHead);
  layer.gated_unit();
}

void qwen3_layer(ResidualStream& x, const LayerWeights& w, const LayerInputs& in) {
  const double eps = in.shape.norm_eps;
  x.add(self_attention(x.normed(w.first_norm, eps), w, QkNorm::kHead, in));
  x.add(gated_unit(x.normed(w.second_norm, eps), w));
}

}  // namespace

const ArchitectureSpec& qwen3_architecture() {
  static const ArchitectureSpec spec = {
      .model_type = "qwen3",
      .kv_heads = 32,
      .head_dim = 128,
      .windows = WindowRule{.slides = slides_from_max_window_layers},
      .read_biases = read_attention_bias,
      .parameters = qwen3_parameters,
      .layer = qwen3_layer,
      .panel_form = PanelForm::kNormsBefore};
  return spec;
}

}  // namespace antisd::inline model
