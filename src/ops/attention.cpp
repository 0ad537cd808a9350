#include "ops/attention.h"

#include "core/check.h"
#include "ops/attention_choice.h"
#include "ops/cpu_attention.h"

#ifdef ANTISD_CUDA
#include "ops/cuda_ragged_attention.h"
#endif

namespace antisd::inline ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Everything but the tensors.
struct Problem {
  bool on_cpu;
  std::vector<std::int32_t> query_offsets, key_offsets;  // CPU
  AttentionCode code = AttentionCode::kChosen;           // GPU
  SumOrder sums = SumOrder::kAny;
  std::shared_ptr<const RaggedTables> ragged_tables;
  std::int64_t longest_query, longest_key;
  std::int64_t window;
  double scale;
};

// What attention reads; of ragged attention, copies with spare rows.
struct Operands {
  at::Tensor q, k, v;
};

#ifdef ANTISD_CUDA
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

// Flash attention asks torch's context for the order of its sums, and obeys where that must not
// only warn.
class SumOrderGuard {
 public:
  explicit SumOrderGuard(SumOrder order)
      : fixed_(at::globalContext().deterministicAlgorithms()),
        warns_(at::globalContext().deterministicAlgorithmsWarnOnly()) {
    if (order == SumOrder::kFixed)
      at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  }
  ~SumOrderGuard() { at::globalContext().setDeterministicAlgorithms(fixed_, warns_); }
  SumOrderGuard(const SumOrderGuard&) = delete;
  SumOrderGuard& operator=(const SumOrderGuard&) = delete;

 private:
  bool fixed_, warns_;
};

variable_list packed_backward(const at::Tensor& gradient, const variable_list& saved,
                              const Problem& p) {
  const SumOrderGuard order(p.sums);
  const auto [left, right] = window_sides(p.window);
  const auto [dq, dk, dv] = at::_flash_attention_backward(
      gradient, saved[0], saved[1], saved[2], saved[3], saved[4], saved[7], saved[8],
      p.longest_query, p.longest_key, /*dropout_p=*/0.0, /*is_causal=*/true, saved[5], saved[6],
      p.scale, left, right);
  return {dq, dk, dv};
}

// By flash attention where that is faster, or cuDNN has no kernel.
variable_list backward_of_ragged(const at::Tensor& gradient, variable_list saved,
                                 const Problem& p) {
  const bool too_long = p.ragged_tables->backward.empty();
  if (choose_ragged_backward(p.sums, p.window, p.ragged_tables->forward.run.prefix, too_long) ==
      AttentionCode::kRagged) {
    auto result = ragged_backward(gradient, saved[0], saved[1], saved[2], saved[5], saved[4],
                                  *p.ragged_tables, p.window, p.scale, p.sums);
    if (result) return *std::move(result);
  }
  const auto rows = [](const at::Tensor& x, std::int64_t count) { return x.narrow(0, 0, count); };
  const std::int64_t queries = gradient.size(0), keys = p.ragged_tables->forward.keys;
  saved[0] = rows(saved[0], queries);
  saved[1] = rows(saved[1], keys);
  saved[2] = rows(saved[2], keys);
  saved[4] = rows(saved[4], queries).t().contiguous();  // [heads, queries]
  // The state of dropout, of which there is none.
  saved[5] = saved[6] = at::empty({2}, gradient.options().dtype(at::kUInt64));
  return packed_backward(gradient, saved, p);
}

// Chooses the code, and gives the operands its form.
void prepare_on_gpu(Operands& operands, const AttentionLayout& layout, Problem& p) {
  const at::Tensor& q = operands.q;
  if (p.code == AttentionCode::kChosen)
    p.code = choose_attention(attention_card(q.device().index()), q, layout, p.window);
  if (p.code != AttentionCode::kRagged) return;
  const RaggedHeads heads{q.size(1), operands.k.size(1), q.size(2)};
  p.ragged_tables = ragged_tables(layout, heads, q.device());
  if (!has_ragged_forward(q, *p.ragged_tables, p.window, p.scale)) {
    p.code = AttentionCode::kPacked;
    return;
  }
  const at::NoGradGuard no_grad;
  operands = {with_spare_rows(q), with_spare_rows(operands.k), with_spare_rows(operands.v)};
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

AttentionKept attention_forward(const Operands& operands,
                                [[maybe_unused]] const AttentionLayout& layout, const Problem& p,
                                [[maybe_unused]] bool backward_follows) {
  const auto& [q, k, v] = operands;
#ifdef ANTISD_CUDA
  if (!p.on_cpu) {
    switch (p.code) {
      case AttentionCode::kRagged:
        return ragged_forward(q, k, v, *p.ragged_tables, p.window, p.scale);
      case AttentionCode::kDense:
        return dense_forward(q, k, v, p, backward_follows);
      default:
        return packed_forward(q, k, v, layout, p);
    }
  }
#endif
  return cpu_forward(q, k, v, p);
}

variable_list attention_backward(const at::Tensor& gradient, const variable_list& saved,
                                 const Problem& p) {
#ifdef ANTISD_CUDA
  if (!p.on_cpu) {
    switch (p.code) {
      case AttentionCode::kRagged:
        return backward_of_ragged(gradient, saved, p);
      case AttentionCode::kDense:
        return dense_backward(gradient, saved, p);
      default:
        return packed_backward(gradient, saved, p);
    }
  }
#endif
  return cpu_backward(gradient, saved, p);
}

// Carries the problem through the context, which holds only such objects.
struct ProblemHolder : torch::CustomClassHolder {
  explicit ProblemHolder(Problem problem) : problem(std::move(problem)) {}
  Problem problem;
};

struct Attention : torch::autograd::Function<Attention> {
  // q, k and v have the gradients; `operands` are what the backward pass reads.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& /*q*/,
                            const at::Tensor& /*k*/, const at::Tensor& /*v*/,
                            const Operands& operands, const AttentionLayout& layout,
                            const c10::intrusive_ptr<ProblemHolder>& holder,
                            const AttentionKept& kept) {
    context->save_for_backward({operands.q, operands.k, operands.v, kept.out, kept.lse,
                                kept.extra_a, kept.extra_b, layout.device_query_offsets,
                                layout.device_key_offsets});
    context->saved_data["problem"] = c10::IValue::make_capsule(holder);
    return kept.out.view_as(kept.out);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto capsule = context->saved_data["problem"].toCapsule();
    const Problem& p = static_cast<ProblemHolder&>(*capsule).problem;
    const at::Tensor gradient = gradients[0].contiguous();
    variable_list result = attention_backward(gradient, saved, p);
    result.resize(7);
    return result;
  }
};

}  // namespace

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const AttentionLayout& layout, std::int64_t window, double scale,
                     Gradients gradients, AttentionKept* kept, AttentionCode code) {
  const at::AutoGradMode recording(gradients == Gradients::kRecorded);
  ANTISD_CHECK_EQ(q.size(1) % k.size(1), 0);
  ANTISD_CHECK_EQ(layout.query_offsets.size(), layout.key_offsets.size());
  ANTISD_CHECK_EQ(layout.query_offsets.back(), q.size(0));
  const bool gathered = layout.key_rows.defined();
  const at::Tensor keys = gathered ? k.index_select(0, layout.key_rows) : k;
  const at::Tensor values = gathered ? v.index_select(0, layout.key_rows) : v;
  ANTISD_CHECK_EQ(layout.key_offsets.back(), keys.size(0));
  Operands operands{q, keys, values};
  Problem problem{.on_cpu = q.is_cpu(),
                  .code = code,
                  .sums = layout.sums,
                  .longest_query = layout.longest_query,
                  .longest_key = layout.longest_key,
                  .window = window,
                  .scale = scale};
  if (problem.on_cpu) {
    problem.query_offsets = layout.query_offsets;
    problem.key_offsets = layout.key_offsets;
    operands = {q.contiguous(), keys.contiguous(), values.contiguous()};
  }
#ifdef ANTISD_CUDA
  if (!problem.on_cpu) prepare_on_gpu(operands, layout, problem);
#endif
  AttentionKept result;
  if (kept != nullptr && kept->out.defined()) {
    result = std::move(*kept);
    *kept = {};
  } else {
    const at::NoGradGuard no_grad;
    const bool backward_follows = gradients == Gradients::kRecorded || kept != nullptr;
    result = attention_forward(operands, layout, problem, backward_follows);
    if (kept != nullptr) *kept = result;
  }
  if (gradients == Gradients::kNone) return result.out;
  return Attention::apply(q, keys, values, operands, layout,
                          c10::make_intrusive<ProblemHolder>(std::move(problem)), result);
}

}  // namespace antisd::inline ops
