// Llama, and SmolLM2, which has the same architecture: plain pre-norm.
#include "model/architecture.h"

namespace antisd::inline model {
namespace {

void read_llama_biases(const ConfigFields& fields, ModelShape& shape) {
  read_attention_bias(fields, shape);
  shape.mlp_bias = fields.boolean("mlp_bias", false);
}

void llama_parameters(LayerParameters& layer) {
  layer.norm("first_norm", "input_layernorm");
  layer.norm("second_norm", "post_attention_layernorm");
  layer.attention(QkNorm::kNone);
  layer.gated_unit();
}

void llama_layer(ResidualStream& x, const LayerWeights& w, const LayerInputs& in) {
  const double eps = in.shape.norm_eps;
  x.add(self_attention(x.normed(w.first_norm, eps), w, QkNorm::kNone, in));
  x.add(gated_unit(x.normed(w.second_norm, eps), w));
}

}  // namespace

const ArchitectureSpec& llama_architecture() {
  static const ArchitectureSpec spec = {.model_type = "llama",
                                        .max_positions = 2048,
                                        .read_biases = read_llama_biases,
                                        .parameters = llama_parameters,
                                        .layer = llama_layer,
                                        .panel_form = PanelForm::kNormsBefore};
  return spec;
}

}  // namespace antisd::inline model
