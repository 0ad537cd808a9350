#include "model/layer.h"

#include "model/checkpointed.h"
#include "ops/swiglu.h"

namespace antisd {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::optional<at::Tensor> optional(const at::Tensor& bias) {
  return bias.defined() ? std::optional(bias) : std::nullopt;
}

// h + x w^T + bias, of which the backward pass needs x and w alone.
struct AddProjection : torch::autograd::Function<AddProjection> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& h, const at::Tensor& x,
                            const at::Tensor& w, const std::optional<at::Tensor>& bias) {
    context->save_for_backward({x, w});
    context->saved_data["bias"] = bias.has_value();
    if (is_recomputing()) return h.view_as(h);
    return h + at::linear(x, w, bias);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& dy = gradients[0];
    variable_list result(4);
    result[0] = dy;
    result[1] = dy.mm(saved[1]);
    result[2] = dy.t().mm(saved[0]);
    if (context->saved_data["bias"].toBool()) result[3] = dy.sum(0);
    return result;
  }
};

at::Tensor gated(const at::Tensor& x, const LayerWeights& w) {  // [tokens, intermediate]
  return swiglu(at::linear(x, w.gate_up, optional(w.gate_up_bias)));
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
  return at::linear(gated(x, w), w.down, optional(w.down_bias));
}

at::Tensor add_gated_unit(const at::Tensor& h, const at::Tensor& x, const LayerWeights& w) {
  return AddProjection::apply(h, gated(x, w), w.down, optional(w.down_bias));
}

}  // namespace antisd
