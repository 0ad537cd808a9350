#include "ops/attention.h"

#include "core/check.h"
#include "ops/backend.h"
#include "ops/cpu_attention.h"

namespace antisd::inline ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

enum class Backend { kCpu, kPacked, kDense };

// Everything but the tensors.
struct Problem {
  Backend backend;
  std::vector<std::int32_t> query_offsets, key_offsets;  // CPU
  std::int64_t longest_query, longest_key;
  std::int64_t window;
  double scale;
};

#ifdef ANTISD_CUDA
// On Hopper cuDNN is up to twice as fast as packed flash attention but takes equal lengths alone,
// and it builds a plan for every new shape (some 50 ms, kept for the life of the process): so it
// gets the batches whose lengths are all one multiple of this, which come again. Compute capability
// 8.x and 12.x lack the instructions that make it faster.
constexpr std::int64_t kDenseLength = 256;

bool suits_dense(const at::Tensor& q, const AttentionLayout& layout, std::int64_t window) {
  const std::int64_t length = layout.longest_query;
  if (window > 0 || layout.key_rows.defined() || length % kDenseLength != 0 || q.size(2) > 128 ||
      q.size(2) % 8 != 0 || q.scalar_type() == at::kFloat) {
    return false;
  }
  if (const int major = compute_capability_major(q); major != 9 && major != 10) return false;
  for (std::size_t i = 1; i < layout.query_offsets.size(); ++i) {
    if (layout.query_offsets[i] - layout.query_offsets[i - 1] != length) return false;
  }
  return true;
}

// [tokens, heads, head_dim] as [sequences, heads, length, head_dim], and back.
at::Tensor by_sequence(const at::Tensor& x, std::int64_t length) {
  return x.view({-1, length, x.size(1), x.size(2)}).transpose(1, 2);
}
at::Tensor end_to_end(const at::Tensor& x) {
  return x.transpose(1, 2).reshape({-1, x.size(1), x.size(3)});
}

AttentionKept dense_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const Problem& p, bool gradients) {
  const std::int64_t length = p.longest_query;
  const auto result = at::_scaled_dot_product_cudnn_attention(
      by_sequence(q, length), by_sequence(k, length), by_sequence(v, length),
      /*attn_bias=*/std::nullopt, /*compute_log_sumexp=*/gradients, /*dropout_p=*/0.0,
      /*is_causal=*/true, /*return_debug_mask=*/false, p.scale);
  return {end_to_end(std::get<0>(result)), std::get<1>(result), std::get<6>(result),
          std::get<7>(result)};
}

variable_list dense_backward(const at::Tensor& gradient, const variable_list& saved,
                             const Problem& p) {
  const std::int64_t length = p.longest_query;
  const auto [dq, dk, dv] = at::_scaled_dot_product_cudnn_attention_backward(
      by_sequence(gradient, length), by_sequence(saved[0], length), by_sequence(saved[1], length),
      by_sequence(saved[2], length), by_sequence(saved[3], length), saved[4], saved[5], saved[6],
      /*attn_bias=*/at::Tensor(), /*cum_seq_q=*/at::Tensor(), /*cum_seq_k=*/at::Tensor(), length,
      length, /*dropout_p=*/0.0, /*is_causal=*/true, p.scale);
  return {end_to_end(dq), end_to_end(dk), end_to_end(dv)};
}

// The kernel's window counts keys to the left of the query's own.
std::pair<std::optional<std::int64_t>, std::optional<std::int64_t>> window_sides(
    std::int64_t window) {
  if (window == 0) return {std::nullopt, std::nullopt};
  return {window - 1, 0};
}

AttentionKept packed_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const AttentionLayout& layout, const Problem& p) {
  const auto [left, right] = window_sides(p.window);
  const auto result = at::_flash_attention_forward(
      q, k, v, layout.device_query_offsets, layout.device_key_offsets, p.longest_query,
      p.longest_key, /*dropout_p=*/0.0, /*is_causal=*/true, /*return_debug_mask=*/false, p.scale,
      left, right);
  return {std::get<0>(result), std::get<1>(result), std::get<2>(result), std::get<3>(result)};
}

variable_list packed_backward(const at::Tensor& gradient, const variable_list& saved,
                              const Problem& p) {
  const auto [left, right] = window_sides(p.window);
  const auto [dq, dk, dv] = at::_flash_attention_backward(
      gradient, saved[0], saved[1], saved[2], saved[3], saved[4], saved[7], saved[8],
      p.longest_query, p.longest_key, /*dropout_p=*/0.0, /*is_causal=*/true, saved[5], saved[6],
      p.scale, left, right);
  return {dq, dk, dv};
}
#endif

AttentionKept cpu_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const Problem& p) {
  AttentionKept kept;
  kept.out = at::empty_like(q);
  kept.lse = at::empty({q.size(1), q.size(0)}, q.options());  // [heads, queries]
  cpu_attention_forward(q, k, v, p.query_offsets, p.key_offsets, p.window, p.scale, kept.out,
                        kept.lse);
  return kept;
}

variable_list cpu_backward(const at::Tensor& gradient, const variable_list& saved,
                           const Problem& p) {
  at::Tensor dq = at::empty_like(saved[0]), dk = at::zeros_like(saved[1]),
             dv = at::zeros_like(saved[2]);
  cpu_attention_backward(gradient, saved[0], saved[1], saved[2], saved[3], saved[4],
                         p.query_offsets, p.key_offsets, p.window, p.scale, dq, dk, dv);
  return {dq, dk, dv};
}

AttentionKept attention_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                [[maybe_unused]] const AttentionLayout& layout, const Problem& p,
                                [[maybe_unused]] bool backward_follows) {
#ifdef ANTISD_CUDA
  if (p.backend == Backend::kDense) return dense_forward(q, k, v, p, backward_follows);
  if (p.backend == Backend::kPacked) return packed_forward(q, k, v, layout, p);
#endif
  return cpu_forward(q, k, v, p);
}

// Carries the problem through the context, which holds only such objects.
struct ProblemHolder : torch::CustomClassHolder {
  explicit ProblemHolder(Problem problem) : problem(std::move(problem)) {}
  Problem problem;
};

struct Attention : torch::autograd::Function<Attention> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const AttentionLayout& layout,
                            const c10::intrusive_ptr<ProblemHolder>& holder,
                            const AttentionKept& kept) {
    context->save_for_backward({q, k, v, kept.out, kept.lse, kept.extra_a, kept.extra_b,
                                layout.device_query_offsets, layout.device_key_offsets});
    context->saved_data["problem"] = c10::IValue::make_capsule(holder);
    return kept.out.view_as(kept.out);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto capsule = context->saved_data["problem"].toCapsule();
    const Problem& p = static_cast<ProblemHolder&>(*capsule).problem;
    const at::Tensor gradient = gradients[0].contiguous();
    variable_list result;
#ifdef ANTISD_CUDA
    if (p.backend == Backend::kDense) result = dense_backward(gradient, saved, p);
    if (p.backend == Backend::kPacked) result = packed_backward(gradient, saved, p);
#endif
    if (p.backend == Backend::kCpu) result = cpu_backward(gradient, saved, p);
    result.resize(6);
    return result;
  }
};

}  // namespace

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const AttentionLayout& layout, std::int64_t window, double scale,
                     Gradients gradients, AttentionKept* kept) {
  const at::AutoGradMode recording(gradients == Gradients::kRecorded);
  ANTISD_CHECK_EQ(q.size(1) % k.size(1), 0);
  ANTISD_CHECK_EQ(layout.query_offsets.size(), layout.key_offsets.size());
  ANTISD_CHECK_EQ(layout.query_offsets.back(), q.size(0));
  const bool gathered = layout.key_rows.defined();
  at::Tensor queries = q;
  at::Tensor keys = gathered ? k.index_select(0, layout.key_rows) : k;
  at::Tensor values = gathered ? v.index_select(0, layout.key_rows) : v;
  ANTISD_CHECK_EQ(layout.key_offsets.back(), keys.size(0));
  Problem problem{Backend::kCpu, {}, {}, layout.longest_query, layout.longest_key, window, scale};
#ifdef ANTISD_CUDA
  if (q.is_cuda())
    problem.backend = suits_dense(q, layout, window) ? Backend::kDense : Backend::kPacked;
#endif
  if (problem.backend == Backend::kCpu) {
    problem.query_offsets = layout.query_offsets;
    problem.key_offsets = layout.key_offsets;
    queries = q.contiguous();
    keys = keys.contiguous();
    values = values.contiguous();
  }
  AttentionKept result;
  if (kept != nullptr && kept->out.defined()) {
    result = std::move(*kept);
    *kept = {};
  } else {
    const at::NoGradGuard no_grad;
    const bool backward_follows = gradients == Gradients::kRecorded || kept != nullptr;
    result = attention_forward(queries, keys, values, layout, problem, backward_follows);
    if (kept != nullptr) *kept = result;
  }
  if (gradients == Gradients::kNone) return result.out;
  return Attention::apply(queries, keys, values, layout,
                          c10::make_intrusive<ProblemHolder>(std::move(problem)), result);
}

}  // namespace antisd::inline ops
