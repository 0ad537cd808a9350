#include "model/layer.h"

#include "ops/cpu_gated_unit.h"
#include "ops/swiglu.h"

namespace antisd {
namespace {

std::optional<at::Tensor> optional(const at::Tensor& bias) {
  return bias.defined() ? std::optional(bias) : std::nullopt;
}

// Whether the CPU's fused paths without gradients apply.
bool fused(const at::Tensor& x, const at::Tensor& bias) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && !bias.defined() &&
         !at::GradMode::is_enabled();
}

at::Tensor linear_onto(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight,
                       const at::Tensor& bias) {
  if (fused(x, bias)) return cpu_linear(x.contiguous(), weight, residual);
  if (!residual.defined()) return at::linear(x, weight, optional(bias));
  if (!bias.defined() && x.is_cpu()) return at::addmm(residual, x, weight.t());
  return residual + at::linear(x, weight, optional(bias));
}

}  // namespace

at::Tensor self_attention(const at::Tensor& x, const LayerWeights& w, QkNorm norm,
                          const LayerInputs& in, const at::Tensor& residual) {
  const ModelShape& shape = in.shape;
  const at::Tensor qkv =
      linear_onto({}, x, w.qkv, w.qkv_bias);  // [tokens, (heads + 2 kv_heads) head_dim]
  const auto [q, k, v] =
      attention_inputs(qkv, {shape.heads, shape.kv_heads, shape.head_dim}, norm, w.q_norm, w.k_norm,
                       shape.norm_eps, in.rope, in.positions);
  const at::Tensor mixed = in.attend(q, k, v);  // [tokens, heads, head_dim]
  return linear_onto(residual, mixed.flatten(1), w.output, w.output_bias);
}

at::Tensor gated_unit(const at::Tensor& x, const LayerWeights& w, const at::Tensor& residual) {
  if (fused(x, w.gate_up_bias) && !w.down_bias.defined())
    return cpu_gated_unit(x.contiguous(), w.gate_up, w.down, residual);
  return linear_onto(residual, swiglu(at::linear(x, w.gate_up, optional(w.gate_up_bias))), w.down,
                     w.down_bias);
}

}  // namespace antisd
