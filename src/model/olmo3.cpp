// Olmo-3: norms after attention and after the gated unit, none before; queries and keys normed over
// the whole projection. Three of four layers see a window; YaRN stretches the positions of the
// others alone.
#include "model/layer.h"
#include "ops/rms_norm.h"

namespace antisd {

void olmo3_layer(ResidualStream& x, const LayerWeights& w, const LayerInputs& in) {
  const double eps = in.shape.norm_eps;
  const auto rounded = [&] { return x.value().to(w.qkv.scalar_type()); };
  const Product attended = self_attention(rounded(), w, QkNorm::kProjection, in);
  x.add(rms_norm(attended.value(), w.first_norm, eps));
  x.add(rms_norm(gated_unit(rounded(), w).value(), w.second_norm, eps));
}

}  // namespace antisd
