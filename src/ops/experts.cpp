#include "ops/experts.h"

#include "core/check.h"
#include "ops/backend.h"
#include "ops/expert_rows.h"
#include "ops/products.h"
#include "ops/quantized_linear.h"
#include "ops/swiglu.h"

#ifdef ANTISD_CUDA
#include "ops/kernels/top_experts.h"
#endif

namespace antisd::inline ops {
namespace {

// What the adapters of all experts add to the columns [0, out) of their products.
at::Tensor grouped_lora(const at::Tensor& x, const LoraWeights& lora, std::int64_t out,
                        const at::Tensor& ends, GroupedCode code) {
  const std::int64_t rank = lora.rank();
  const at::Tensor z = grouped_linear(x, lora.a, ends, code) * lora.scale;
  std::vector<at::Tensor> columns;
  std::int64_t filled = 0, z_at = 0, b_at = 0;
  const auto fill_to = [&](std::int64_t end) {
    if (end > filled) columns.push_back(at::zeros({x.size(0), end - filled}, x.options()));
  };
  for (const LoraPart& part : lora.parts) {
    fill_to(part.first_row);
    columns.push_back(grouped_linear(z.narrow(1, z_at, rank).contiguous(),
                                     lora.b.narrow(1, b_at, part.rows).contiguous(), ends, code));
    filled = part.first_row + part.rows;
    z_at += rank;
    b_at += part.rows;
  }
  fill_to(out);
  return columns.size() == 1 ? columns.front() : at::cat(columns, 1);
}

// The ids of the k largest values of each row, largest first.
at::Tensor top_experts(const at::Tensor& probabilities, std::int64_t k) {
#ifdef ANTISD_CUDA
  constexpr std::int64_t kMostExperts = 1024;
  if (probabilities.is_cuda() && probabilities.size(1) <= kMostExperts) {
    at::Tensor ids =
        at::empty({probabilities.size(0), k}, probabilities.options().dtype(at::kLong));
    launch_top_experts(probabilities.const_data_ptr<float>(), probabilities.size(0),
                       static_cast<int>(probabilities.size(1)), static_cast<int>(k),
                       ids.mutable_data_ptr<std::int64_t>(), current_stream(probabilities));
    return ids;
  }
#endif
  return std::get<1>(probabilities.topk(k, -1));
}

}  // namespace

at::Tensor experts(const at::Tensor& x, const ExpertWeights& weights,
                   std::int64_t experts_per_token, bool normalise, GroupedCode code) {
  const std::int64_t tokens = x.size(0), k = experts_per_token;
  ANTISD_CHECK_LE(k, weights.router.size(0));
  const at::Tensor probabilities = antisd::linear(x, weights.router, {}).softmax(-1, at::kFloat);
  const at::Tensor expert = top_experts(probabilities.detach(), k);  // [tokens, k]
  at::Tensor chosen = probabilities.gather(-1, expert);
  if (normalise) chosen = chosen / chosen.sum(-1, /*keepdim=*/true);

  // (token, choice) pairs sorted by expert; stable, so that an expert gets its tokens in order. A
  // narrow type needs fewer radix passes.
  const auto [by_expert, order] =
      expert.flatten().to(at::kShort).sort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  const at::Tensor ends =
      at::searchsorted(by_expert, at::arange(weights.router.size(0), by_expert.options()),
                       /*out_int32=*/true, /*right=*/true);
  const at::Tensor places = at::empty_like(order)
                                .scatter_(0, order, at::arange(tokens * k, order.options()))
                                .view({tokens, k});
  const auto product = [&](const at::Tensor& rows, const at::Tensor& w,
                           const QuantizedWeight& quantized, const LoraWeights* lora) {
    const at::Tensor y = quantized.defined() ? quantized_grouped_linear(rows, quantized, ends)
                                             : grouped_linear(rows, w, ends, code);
    return lora == nullptr ? y : y + grouped_lora(rows, *lora, y.size(1), ends, code);
  };
  const at::Tensor units = swiglu(product(spread_rows(x, places), weights.gate_up,
                                          weights.quantized_gate_up, weights.gate_up_adapter));
  return combine_rows(product(units, weights.down, weights.quantized_down, weights.down_adapter),
                      places, chosen.contiguous());
}

}  // namespace antisd::inline ops
