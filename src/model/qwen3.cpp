// Qwen3: pre-norm; queries and keys normed head by head before rotation.
#include "model/layer.h"
#include "ops/rms_norm.h"

namespace antisd {

at::Tensor qwen3_layer(const at::Tensor& x, const LayerWeights& w, const LayerInputs& in) {
  const double eps = in.shape.norm_eps;
  const at::Tensor h =
      self_attention(rms_norm(x, w.first_norm, eps), w, QkNorm::kHead, in, /*residual=*/x);
  return gated_unit(rms_norm(h, w.second_norm, eps), w, /*residual=*/h);
}

}  // namespace antisd
