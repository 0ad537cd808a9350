// Olmo-3: norms after attention and after the gated unit, none before; queries and keys normed over
// the whole projection. Three of four layers see a window; YaRN stretches the positions of the
// others alone.
#include "model/layer.h"
#include "ops/rms_norm.h"

namespace antisd {

at::Tensor olmo3_layer(const at::Tensor& x, const LayerWeights& w, const LayerInputs& in) {
  const double eps = in.shape.norm_eps;
  const at::Tensor h =
      x + rms_norm(self_attention(x, w, QkNorm::kProjection, in), w.first_norm, eps);
  return h + rms_norm(gated_unit(h, w), w.second_norm, eps);
}

}  // namespace antisd
