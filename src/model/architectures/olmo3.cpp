// Olmo-3: norms after attention and after the gated unit, none before; queries and keys are normed
// over the whole projection. Three of four layers have a window; YaRN applies only to the others,
// since a window never grows.
#include "model/architecture.h"
#include "ops/rms_norm.h"

namespace antisd::inline model {
namespace {

void olmo3_parameters(LayerParameters& layer) {
  layer.norm("first_norm", "post_attention_layernorm");
  layer.norm("second_norm", "post_feedforward_layernorm");
  layer.attention(QkNorm::kProjection);
  layer.gated_unit();
}

void olmo3_layer(ResidualStream& x, const LayerWeights& w, const LayerInputs& in) {
  const double eps = in.shape.norm_eps;
  const auto rounded = [&] { return x.value().to(w.first_norm.scalar_type()); };
  const Product attended = self_attention(rounded(), w, QkNorm::kProjection, in);
  x.add(rms_norm(attended.value(), w.first_norm, eps));
  x.add(rms_norm(gated_unit(rounded(), w).value(), w.second_norm, eps));
}

bool slides_three_of_four(const ConfigFields&, std::int64_t layer) {
  return (layer + 1) % 4 != 0;
}

}  // namespace

const ArchitectureSpec& olmo3_architecture() {
  static const ArchitectureSpec spec = {
      .model_type = "olmo3",
      .max_positions = 2048,
      .norm_eps = 1e-5,
      .rope_theta = 500'000,
      .windows = WindowRule{.always = true, .slides = slides_three_of_four},
      .scales_rope_in_windows = false,
      .read_biases = read_attention_bias,
      .parameters = olmo3_parameters,
      .layer = olmo3_layer,
      .panel_form = PanelForm::kNormsAfter};
  return spec;
}

}  // namespace antisd::inline model
