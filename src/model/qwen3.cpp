// Qwen3: pre-norm; queries and keys normed head by head before rotation.
#include "model/layer.h"

namespace antisd {

void qwen3_layer(ResidualStream& x, const LayerWeights& w, const LayerInputs& in) {
  const double eps = in.shape.norm_eps;
  x.add(self_attention(x.normed(w.first_norm, eps), w, QkNorm::kHead, in));
  x.add(gated_unit(x.normed(w.second_norm, eps), w));
}

}  // namespace antisd
