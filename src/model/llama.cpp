// Llama, and SmolLM2 which is one: plain pre-norm.
#include "model/layer.h"

namespace antisd {

void llama_layer(ResidualStream& x, const LayerWeights& w, const LayerInputs& in) {
  const double eps = in.shape.norm_eps;
  x.add(self_attention(x.normed(w.first_norm, eps), w, QkNorm::kNone, in));
  x.add(gated_unit(x.normed(w.second_norm, eps), w));
}

}  // namespace antisd
