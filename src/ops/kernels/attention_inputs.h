#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "ops/kernels/element_type.h"

namespace antisd::inline ops {

// The heads of one projection, as a kernel sees them. A row of `qkv` is (heads + 2 kv_heads) *
// head_dim elements: queries, keys, values.
struct AttentionInputShape {
  std::int64_t tokens;
  int heads, kv_heads, head_dim;
};

// Whether the kernels below take such heads: 16-byte packs of a head fit one warp evenly.
bool fused_attention_inputs_fit(ElementType type, int head_dim);

// Norm over each head (where q_norm, k_norm are not null), then rotation; one pass. q: [tokens,
// heads, head_dim]. k, v: rows of kv_heads * head_dim elements; token i goes to row rows[i], or to
// row i where `rows` is null; to none where rows[i] < 0. A null v is left out.
void launch_attention_inputs(ElementType type, const AttentionInputShape& shape, const void* qkv,
                             const void* q_norm, const void* k_norm, double eps,
                             const float* cosine, const float* sine, const std::int32_t* positions,
                             void* q, void* k, void* v, const std::int64_t* rows,
                             cudaStream_t stream);

// Gradients lie token_stride and head_stride elements apart.
struct HeadGradient {
  const void* data;
  std::int64_t token_stride, head_stride;
};

// dqkv, whole, from the gradients of q, k and v. Where there are norms: dq_norm, dk_norm, fp32
// [head_dim], are set; `workspace` is fp32 [2 * kAttentionInputsBlocks * head_dim]; sums run in a
// fixed order.
inline constexpr int kAttentionInputsBlocks = 528;
void launch_attention_inputs_backward(ElementType type, const AttentionInputShape& shape,
                                      const HeadGradient& dq, const HeadGradient& dk,
                                      const HeadGradient& dv, const void* qkv, const void* q_norm,
                                      const void* k_norm, double eps, const float* cosine,
                                      const float* sine, const std::int32_t* positions, void* dqkv,
                                      float* dq_norm, float* dk_norm, float* workspace,
                                      cudaStream_t stream);

}  // namespace antisd::inline ops
