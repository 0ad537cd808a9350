#include "ops/attention.h"

#include "core/check.h"
#include "ops/cpu_attention.h"

namespace antisd {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct CpuAttention : torch::autograd::Function<CpuAttention> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const AttentionLayout& layout, std::int64_t window,
                            double scale) {
    at::Tensor out = at::empty_like(q);
    at::Tensor lse = at::empty({q.size(1), q.size(0)}, q.options());  // [heads, queries]
    cpu_attention_forward(q, k, v, layout.query_offsets, layout.key_offsets, window, scale, out,
                          lse);
    context->save_for_backward({q, k, v, out, lse});
    context->saved_data["query_offsets"] = to_list(layout.query_offsets);
    context->saved_data["key_offsets"] = to_list(layout.key_offsets);
    context->saved_data["window"] = window;
    context->saved_data["scale"] = scale;
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    at::Tensor dq = at::empty_like(saved[0]), dk = at::zeros_like(saved[1]),
               dv = at::zeros_like(saved[2]);
    cpu_attention_backward(gradients[0].contiguous(), saved[0], saved[1], saved[2], saved[3],
                           saved[4], from_list(context->saved_data["query_offsets"]),
                           from_list(context->saved_data["key_offsets"]),
                           context->saved_data["window"].toInt(),
                           context->saved_data["scale"].toDouble(), dq, dk, dv);
    return {dq, dk, dv, at::Tensor(), at::Tensor(), at::Tensor()};
  }

 private:
  static std::vector<std::int64_t> to_list(const std::vector<std::int32_t>& values) {
    return {values.begin(), values.end()};
  }
  static std::vector<std::int32_t> from_list(const c10::IValue& value) {
    const auto list = value.toIntVector();
    return {list.begin(), list.end()};
  }
};

#ifdef ANTISD_CUDA
// Both calls carry their own gradients.
at::Tensor gpu_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const AttentionLayout& layout, std::int64_t window, double scale) {
  // The kernel's window counts keys to the left of the query's own.
  const std::optional<c10::SymInt> left =
      window > 0 ? std::optional<c10::SymInt>(window - 1) : std::nullopt;
  const std::optional<c10::SymInt> right =
      window > 0 ? std::optional<c10::SymInt>(0) : std::nullopt;
  return std::get<0>(at::_flash_attention_forward_symint(
      q, k, v, layout.device_query_offsets, layout.device_key_offsets, layout.longest_query,
      layout.longest_key,
      /*dropout_p=*/0.0, /*is_causal=*/true, /*return_debug_mask=*/false, scale, left, right));
}
#endif

}  // namespace

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const AttentionLayout& layout, std::int64_t window, double scale) {
  ANTISD_CHECK_EQ(q.size(1) % k.size(1), 0);
  ANTISD_CHECK_EQ(layout.query_offsets.size(), layout.key_offsets.size());
  ANTISD_CHECK_EQ(layout.query_offsets.back(), q.size(0));
  const bool gathered = layout.key_rows.defined();
  const at::Tensor keys = gathered ? k.index_select(0, layout.key_rows) : k;
  const at::Tensor values = gathered ? v.index_select(0, layout.key_rows) : v;
  ANTISD_CHECK_EQ(layout.key_offsets.back(), keys.size(0));
#ifdef ANTISD_CUDA
  if (q.is_cuda()) return gpu_attention(q, keys, values, layout, window, scale);
#endif
  return CpuAttention::apply(q.contiguous(), keys.contiguous(), values.contiguous(), layout, window,
                             scale);
}

}  // namespace antisd
