#include "ops/optest/value_checks.h"

#ifdef ANTISD_CUDA

#include <cmath>

#include <torch/csrc/autograd/autograd.h>

#include "ops/attention_choice.h"
#include "ops/cuda_ragged_attention.h"
#include "ops/optest/attention_layout.h"

namespace antisd::inline ops {
namespace {

// What the allocator hands out next holds NaN: large blocks for operands and workspaces, small ones
// for lengths and statistics.
void poison_free_memory(at::Device device) {
  Tensors blocks;
  for (const std::int64_t megabytes : {2048, 512, 128, 128, 64, 64, 32, 32, 16, 16, 8, 8, 4, 4})
    blocks.push_back(at::full({megabytes << 18}, std::nan(""), at::device(device)));
  for (int i = 0; i < 64; ++i)
    blocks.push_back(at::full({1 << 14}, std::nan(""), at::device(device)));
}

}  // namespace

double attention_bits_error(const AttentionBits& check, const Backend& backend) {
  const RaggedHeads heads{16, 8, 128};
  const TestLayout test = test_layout({1900, 1, 2047, 650, 1100}, check.prefix);
  Tensors inputs;
  for (const std::int64_t count : {heads.heads, heads.kv_heads, heads.kv_heads, heads.heads}) {
    inputs.push_back(random({test.tokens, count, heads.head_dim}, 80 + inputs.size())
                         .to(backend.dtype)
                         .to(backend.device));
  }
  const AttentionLayout layout = test.on(backend.device);
  if (choose_attention(attention_card(backend.device.index()), inputs[0], layout, check.window) !=
      AttentionCode::kRagged) {
    return 0;
  }
  ragged_tables(layout, heads, backend.device, check.limits);
  // Gathered before, because the gradient of the gather adds in any order.
  const auto gathered = [&](const at::Tensor& x) {
    return test.shared ? x.index_select(0, layout.key_rows) : x;
  };
  const at::Tensor k = gathered(inputs[1]), v = gathered(inputs[2]);
  AttentionLayout in_order = layout;
  in_order.key_rows = at::Tensor();
  in_order.sums = SumOrder::kFixed;
  const auto compute = [&] {
    Tensors leaves;
    for (const at::Tensor& x : {inputs[0], k, v})
      leaves.push_back(x.detach().clone().requires_grad_(true));
    const at::Tensor out = attention(leaves[0], leaves[1], leaves[2], in_order, check.window, 0.09,
                                     Gradients::kRecorded);
    torch::autograd::backward({out}, {inputs[3]});
    return Tensors{out.detach(), leaves[0].grad(), leaves[1].grad(), leaves[2].grad()};
  };
  const Tensors first = compute();
  for (int i = 0; i < 3; ++i) {
    poison_free_memory(backend.device);
    const Tensors again = compute();
    for (std::size_t part = 0; part < first.size(); ++part)
      if (!first[part].equal(again[part])) return 1e9;
  }
  return 0;
}

}  // namespace antisd::inline ops

#endif
