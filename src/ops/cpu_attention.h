// Attention on the CPU, in tiles of a few queries against all keys they see, and a transposed copy
// of those keys: a thread's memory grows with the length of a sequence, never with its square.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace antisd::inline ops {

// All fp32 and contiguous: q, out [queries, heads, head_dim]; k, v [keys, kv_heads, head_dim]; lse
// [heads, queries].
void cpu_attention_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const std::vector<std::int32_t>& query_offsets,
                           const std::vector<std::int32_t>& key_offsets, std::int64_t window,
                           double scale, at::Tensor& out, at::Tensor& lse);

// dq: of the shape of q, filled; dk, dv: zeros of the shapes of k, v, added to.
void cpu_attention_backward(const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const at::Tensor& out, const at::Tensor& lse,
                            const std::vector<std::int32_t>& query_offsets,
                            const std::vector<std::int32_t>& key_offsets, std::int64_t window,
                            double scale, at::Tensor& dq, at::Tensor& dk, at::Tensor& dv);

}  // namespace antisd::inline ops
