// Qwen3-MoE: Qwen3 with experts in place of the gated unit in its sparse layers.
#include "model/layer.h"

namespace antisd {

void qwen3_moe_layer(ResidualStream& x, const LayerWeights& w, const LayerInputs& in) {
  if (!in.layer.sparse) return qwen3_layer(x, w, in);
  const ModelShape& shape = in.shape;
  x.add(self_attention(x.normed(w.first_norm, shape.norm_eps), w, QkNorm::kHead, in));
  x.add(experts(x.normed(w.second_norm, shape.norm_eps), w.experts, shape.experts_per_token,
                shape.normalise_experts));
}

}  // namespace antisd
