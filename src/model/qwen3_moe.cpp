// Qwen3-MoE: Qwen3 with experts in place of the gated unit in its sparse layers.
#include "model/layer.h"
#include "ops/rms_norm.h"

namespace antisd {

at::Tensor qwen3_moe_layer(const at::Tensor& x, const LayerWeights& w, const LayerInputs& in) {
  if (!in.layer.sparse) return qwen3_layer(x, w, in);
  const ModelShape& shape = in.shape;
  const at::Tensor h = self_attention(rms_norm(x, w.first_norm, shape.norm_eps), w, QkNorm::kHead,
                                      in, /*residual=*/x);
  return h + experts(rms_norm(h, w.second_norm, shape.norm_eps), w.experts, shape.experts_per_token,
                     shape.normalise_experts);
}

}  // namespace antisd
