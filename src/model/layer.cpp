#include "model/layer.h"

#include "ops/swiglu.h"

namespace antisd {
namespace {

std::optional<at::Tensor> optional(const at::Tensor& bias) {
  return bias.defined() ? std::optional(bias) : std::nullopt;
}

}  // namespace

at::Tensor self_attention(const at::Tensor& x, const LayerWeights& w, QkNorm norm,
                          const LayerInputs& in) {
  const ModelShape& shape = in.shape;
  const at::Tensor qkv =
      at::linear(x, w.qkv, optional(w.qkv_bias));  // [tokens, (heads + 2 kv_heads) head_dim]
  const auto [q, k, v] =
      attention_inputs(qkv, {shape.heads, shape.kv_heads, shape.head_dim}, norm, w.q_norm, w.k_norm,
                       shape.norm_eps, in.rope, in.positions);
  const at::Tensor mixed = in.attend(q, k, v);  // [tokens, heads, head_dim]
  return at::linear(mixed.flatten(1), w.output, optional(w.output_bias));
}

at::Tensor gated_unit(const at::Tensor& x, const LayerWeights& w) {
  return at::linear(swiglu(at::linear(x, w.gate_up, optional(w.gate_up_bias))), w.down,
                    optional(w.down_bias));
}

}  // namespace antisd
