#include "ops/attention_inputs.h"

#include "core/check.h"
#include "ops/backend.h"
#include "ops/cpu_attention_inputs.h"
#include "ops/rms_norm.h"

#ifdef ANTISD_CUDA
#include "ops/kernels/attention_inputs.h"
#include "ops/kernels/rope.h"
#endif

namespace antisd::inline ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// x: [tokens, heads, head_dim] on the GPU with dense heads, rotated in place; direction -1 rotates
// back.
void rotate([[maybe_unused]] const at::Tensor& x, [[maybe_unused]] const at::Tensor& cosine,
            [[maybe_unused]] const at::Tensor& sine, [[maybe_unused]] const at::Tensor& positions,
            [[maybe_unused]] int direction) {
#ifdef ANTISD_CUDA
  launch_rope(element_type(x), x.mutable_data_ptr(), x.stride(0), cosine.const_data_ptr<float>(),
              sine.const_data_ptr<float>(), positions.const_data_ptr<std::int32_t>(), x.size(0),
              static_cast<int>(x.size(1)), static_cast<int>(x.size(2)), direction,
              current_stream(x));
#endif
}

// Rows over which a norm runs: heads of all tokens, or tokens. A projection's heads are dense
// within a token but tokens lie a whole qkv row apart, so heads as rows need a copy unless there is
// one head.
at::Tensor norm_rows(const at::Tensor& x, QkNorm norm) {  // x: [tokens, heads, head_dim]
  return norm == QkNorm::kHead ? x.reshape({-1, x.size(2)}) : x.flatten(1);
}

std::optional<at::Tensor> optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

#ifdef ANTISD_CUDA
// Whether one kernel does it all: heads of a common size, normed one by one or not at all.
bool is_fused(const at::Tensor& qkv, QkNorm norm, std::int64_t head_dim) {
  return qkv.is_cuda() && norm != QkNorm::kProjection &&
         fused_attention_inputs_fit(element_type(qkv), static_cast<int>(head_dim));
}

const void* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}

// A gradient as the kernel takes it: heads dense, packs aligned.
HeadGradient head_gradient(at::Tensor& gradient) {
  if (gradient.stride(2) != 1 || gradient.stride(0) % 8 != 0 || gradient.stride(1) % 8 != 0)
    gradient = gradient.contiguous();
  return {gradient.const_data_ptr(), gradient.stride(0), gradient.stride(1)};
}
#endif

struct AttentionInputs : torch::autograd::Function<AttentionInputs> {
  static variable_list forward(AutogradContext* context, const at::Tensor& qkv,
                               const std::optional<at::Tensor>& q_norm,
                               const std::optional<at::Tensor>& k_norm, const at::Tensor& cosine,
                               const at::Tensor& sine, const at::Tensor& positions,
                               std::int64_t heads, std::int64_t kv_heads, std::int64_t head_dim,
                               std::int64_t norm_kind, double eps) {
    const auto norm = static_cast<QkNorm>(norm_kind);
    const at::Tensor all = qkv.view({qkv.size(0), heads + 2 * kv_heads, head_dim});
    context->saved_data["heads"] = heads;
    context->saved_data["kv_heads"] = kv_heads;
    context->saved_data["head_dim"] = head_dim;
    context->saved_data["norm"] = norm_kind;
    context->saved_data["eps"] = eps;
    std::array<at::Tensor, 2> inverse_rms;
#ifdef ANTISD_CUDA
    if (is_fused(qkv, norm, head_dim)) {
      const at::Tensor q = at::empty({qkv.size(0), heads, head_dim}, qkv.options());
      const at::Tensor k = at::empty({qkv.size(0), kv_heads, head_dim}, qkv.options());
      launch_attention_inputs(element_type(qkv),
                              {qkv.size(0), static_cast<int>(heads), static_cast<int>(kv_heads),
                               static_cast<int>(head_dim)},
                              qkv.const_data_ptr(), data_or_null(q_norm.value_or(at::Tensor())),
                              data_or_null(k_norm.value_or(at::Tensor())), eps,
                              cosine.const_data_ptr<float>(), sine.const_data_ptr<float>(),
                              positions.const_data_ptr<std::int32_t>(), q.mutable_data_ptr(),
                              k.mutable_data_ptr(), nullptr, nullptr, current_stream(qkv));
      context->save_for_backward({qkv, q_norm.value_or(at::Tensor()), k_norm.value_or(at::Tensor()),
                                  cosine, sine, positions});
      return {q, k, all.narrow(1, heads + kv_heads, kv_heads)};
    }
#endif
    const auto keep = [&] {
      context->save_for_backward({norm == QkNorm::kNone ? at::Tensor() : qkv,
                                  q_norm.value_or(at::Tensor()), k_norm.value_or(at::Tensor()),
                                  cosine, sine, positions, inverse_rms[0], inverse_rms[1]});
    };
    if (qkv.is_cpu()) {
      const std::array<at::Tensor, 3> parts = {
          at::empty({qkv.size(0), heads, head_dim}, qkv.options()),
          at::empty({qkv.size(0), kv_heads, head_dim}, qkv.options()),
          at::empty({qkv.size(0), kv_heads, head_dim}, qkv.options())};
      inverse_rms =
          cpu_attention_inputs({{heads, kv_heads, head_dim},
                                norm,
                                eps,
                                {q_norm.value_or(at::Tensor()), k_norm.value_or(at::Tensor())},
                                cosine,
                                sine,
                                positions},
                               qkv, parts);
      keep();
      return {parts[0], parts[1], parts[2]};
    }
    const auto prepare = [&](std::int64_t first, std::int64_t count,
                             const std::optional<at::Tensor>& weight, int index) {
      const at::Tensor source = all.narrow(1, first, count);
      at::Tensor result = at::empty(source.sizes(), source.options());
      if (norm == QkNorm::kNone) {
        result.copy_(source);
      } else {
        inverse_rms[index] =
            rms_norm_forward(norm_rows(source, norm), *weight, eps, norm_rows(result, norm));
      }
      rotate(result, cosine, sine, positions, 1);
      return result;
    };
    const at::Tensor q = prepare(0, heads, q_norm, 0);
    const at::Tensor k = prepare(heads, kv_heads, k_norm, 1);
    const at::Tensor v = all.narrow(1, heads + kv_heads, kv_heads).contiguous();
    keep();
    return {q, k, v};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const std::int64_t heads = context->saved_data["heads"].toInt();
    const std::int64_t kv_heads = context->saved_data["kv_heads"].toInt();
    const std::int64_t head_dim = context->saved_data["head_dim"].toInt();
    const auto norm = static_cast<QkNorm>(context->saved_data["norm"].toInt());
    const std::int64_t tokens = gradients[0].size(0), width = (heads + 2 * kv_heads) * head_dim;
    at::Tensor dqkv = at::empty({tokens, width}, gradients[0].options());
    const at::Tensor dall = dqkv.view({tokens, heads + 2 * kv_heads, head_dim});
    std::array<at::Tensor, 2> dweight;
    variable_list result(11);
    result[0] = dqkv;
#ifdef ANTISD_CUDA
    if (is_fused(dqkv, norm, head_dim)) {
      at::Tensor workspace;
      const bool normed = norm != QkNorm::kNone;
      if (normed) {
        const auto fp32 = dqkv.options().dtype(at::kFloat);
        workspace = at::empty({2 * kAttentionInputsBlocks * head_dim}, fp32);
        dweight = {at::empty({head_dim}, fp32), at::empty({head_dim}, fp32)};
      }
      const auto sum = [&](int i) {
        return normed ? dweight[i].mutable_data_ptr<float>() : nullptr;
      };
      launch_attention_inputs_backward(
          element_type(dqkv),
          {tokens, static_cast<int>(heads), static_cast<int>(kv_heads), static_cast<int>(head_dim)},
          head_gradient(gradients[0]), head_gradient(gradients[1]), head_gradient(gradients[2]),
          saved[0].const_data_ptr(), data_or_null(saved[1]), data_or_null(saved[2]),
          context->saved_data["eps"].toDouble(), saved[3].const_data_ptr<float>(),
          saved[4].const_data_ptr<float>(), saved[5].const_data_ptr<std::int32_t>(),
          dqkv.mutable_data_ptr(), sum(0), sum(1),
          normed ? workspace.mutable_data_ptr<float>() : nullptr, current_stream(dqkv));
      for (int i = 0; normed && i < 2; ++i)
        result[1 + i] = dweight[i].to(saved[1 + i].scalar_type());
      return result;
    }
#endif
    if (dqkv.is_cpu()) {
      dweight = cpu_attention_inputs_backward(
          {{heads, kv_heads, head_dim},
           norm,
           0,
           {saved[1], saved[2]},
           saved[3],
           saved[4],
           saved[5]},
          {gradients[0].contiguous(), gradients[1].contiguous(), gradients[2].contiguous()},
          saved[0], {saved[6], saved[7]}, dqkv);
      result[1] = dweight[0];
      result[2] = dweight[1];
      return result;
    }
    const auto undo = [&](const at::Tensor& gradient, std::int64_t first, std::int64_t count,
                          int index) {
      const at::Tensor target = dall.narrow(1, first, count);
      if (norm == QkNorm::kNone) {
        target.copy_(gradient);
        return rotate(target, saved[3], saved[4], saved[5], -1);
      }
      at::Tensor rotated = gradient.contiguous().clone();
      rotate(rotated, saved[3], saved[4], saved[5], -1);
      const at::Tensor source =
          saved[0].view({tokens, heads + 2 * kv_heads, head_dim}).narrow(1, first, count);
      const at::Tensor dx = norm == QkNorm::kHead ? at::empty_like(rotated) : target;
      dweight[index] = rms_norm_backward(norm_rows(rotated, norm), norm_rows(source, norm),
                                         saved[1 + index], saved[6 + index], norm_rows(dx, norm))
                           .to(saved[1 + index].scalar_type());
      if (norm == QkNorm::kHead) target.copy_(dx);
    };
    undo(gradients[0], 0, heads, 0);
    undo(gradients[1], heads, kv_heads, 1);
    dall.narrow(1, heads + kv_heads, kv_heads).copy_(gradients[2]);
    result[1] = dweight[0];
    result[2] = dweight[1];
    return result;
  }
};

}  // namespace

std::array<at::Tensor, 3> attention_inputs(const at::Tensor& qkv, const AttentionShape& shape,
                                           QkNorm norm, const at::Tensor& q_norm,
                                           const at::Tensor& k_norm, double eps,
                                           const RopeTable& rope, const at::Tensor& positions) {
  ANTISD_CHECK(qkv.is_contiguous() && positions.scalar_type() == at::kInt);
  ANTISD_CHECK_EQ(positions.numel(), qkv.size(0));
  const auto parts = AttentionInputs::apply(qkv, optional(q_norm), optional(k_norm), rope.cosine,
                                            rope.sine, positions, shape.heads, shape.kv_heads,
                                            shape.head_dim, static_cast<std::int64_t>(norm), eps);
  return {parts[0], parts[1], parts[2]};
}

at::Tensor attention_inputs_to_cache(const at::Tensor& qkv, const AttentionShape& shape,
                                     QkNorm norm, const at::Tensor& q_norm,
                                     const at::Tensor& k_norm, double eps, const RopeTable& rope,
                                     const at::Tensor& positions, const CacheTarget& cache) {
#ifdef ANTISD_CUDA
  if (is_fused(qkv, norm, shape.head_dim)) {
    at::Tensor q = at::empty({qkv.size(0), shape.heads, shape.head_dim}, qkv.options());
    launch_attention_inputs(element_type(qkv),
                            {qkv.size(0), static_cast<int>(shape.heads),
                             static_cast<int>(shape.kv_heads), static_cast<int>(shape.head_dim)},
                            qkv.const_data_ptr(), data_or_null(q_norm), data_or_null(k_norm), eps,
                            rope.cosine.const_data_ptr<float>(), rope.sine.const_data_ptr<float>(),
                            positions.const_data_ptr<std::int32_t>(), q.mutable_data_ptr(),
                            cache.kv.keys.mutable_data_ptr(), cache.kv.values.mutable_data_ptr(),
                            cache.slots.const_data_ptr<std::int64_t>(), current_stream(qkv));
    return q;
  }
#endif
  const auto [q, k, v] = attention_inputs(qkv, shape, norm, q_norm, k_norm, eps, rope, positions);
  store_kv(k, v, cache.slots, cache.kv);
  return q;
}

}  // namespace antisd::inline ops
