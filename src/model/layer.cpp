#include "model/layer.h"

#include "ops/swiglu.h"

namespace antisd {

Product self_attention(const at::Tensor& x, const LayerWeights& w, QkNorm norm,
                       const LayerInputs& in) {
  const ModelShape& shape = in.shape;
  const at::Tensor qkv =
      Product{x, w.qkv, w.qkv_bias}.value();  // [tokens, (heads + 2 kv_heads) head_dim]
  const AttentionShape heads{shape.heads, shape.kv_heads, shape.head_dim};
  at::Tensor mixed;  // [tokens, heads, head_dim]
  if (in.cache != nullptr) {
    mixed = in.attend(attention_inputs_to_cache(qkv, heads, norm, w.q_norm, w.k_norm,
                                                shape.norm_eps, in.rope, in.positions, *in.cache),
                      {}, {});
  } else {
    const auto [q, k, v] = attention_inputs(qkv, heads, norm, w.q_norm, w.k_norm, shape.norm_eps,
                                            in.rope, in.positions);
    mixed = in.attend(q, k, v);
  }
  return {mixed.flatten(1), w.output, w.output_bias};
}

Product gated_unit(const at::Tensor& x, const LayerWeights& w) {
  const at::Tensor units =
      swiglu(Product{x, w.gate_up, w.gate_up_bias}.value());  // [tokens, intermediate]
  return {units, w.down, w.down_bias};
}

}  // namespace antisd
