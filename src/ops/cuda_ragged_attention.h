// Attention over packed sequences of different lengths by cuDNN's ragged kernels: on Hopper about
// twice as fast as packed flash attention.
//
// A layout has its ragged_tables(); with operands from with_spare_rows() and where
// has_ragged_forward() says so, ragged_forward() computes, and ragged_backward() its gradients.
// Operands have zeros behind their last row, because a kernel's last tile reads beyond the sequence
// and plans made for more sequences than there are use that row for the rest.
#pragma once

#include <memory>
#include <optional>

#include <torch/csrc/autograd/custom_function.h>

#include "ops/attention.h"
#include "ops/ragged_runs.h"

namespace antisd::inline ops {

// One run's lengths and offsets on the device, in `numbers` of RaggedTables from `begin` on.
struct RaggedPart {
  RaggedRun run;
  std::int64_t first_query = 0, first_key = 0;  // rows
  std::int64_t queries = 0, keys = 0;
  std::int64_t begin = 0;
};

// What the calls over a batch need; made once and used by every layer.
struct RaggedTables {
  RaggedHeads heads;
  RaggedPart forward;
  std::vector<RaggedPart> backward;  // none: a sequence is too long for a fixed order of sums
  at::Tensor numbers;                // int32
};

// The layout keeps them for the next call, whatever its limits.
std::shared_ptr<const RaggedTables> ragged_tables(const AttentionLayout& layout,
                                                  const RaggedHeads& heads, at::Device device,
                                                  const RaggedLimits& limits = {});

// A dense copy with rows of zeros behind the last.
at::Tensor with_spare_rows(const at::Tensor& x);

// Whether cuDNN has a kernel; the answer never changes.
bool has_ragged_forward(const at::Tensor& q, const RaggedTables& tables, std::int64_t window,
                        double scale);

// Operands with spare rows. The result's `out` has none, `extra_a` is the same memory with them;
// lse is [queries and spare rows, heads].
AttentionKept ragged_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const RaggedTables& tables, std::int64_t window, double scale);

// All but the gradient with spare rows; returns dq, dk and dv without. Nothing where cuDNN has no
// kernel.
std::optional<torch::autograd::variable_list> ragged_backward(
    const at::Tensor& gradient, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const at::Tensor& out, const at::Tensor& lse, const RaggedTables& tables, std::int64_t window,
    double scale, SumOrder order);

}  // namespace antisd::inline ops
