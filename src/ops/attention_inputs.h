// From one projection to the queries, keys and values of attention: split, norm of queries and keys
// where the model has one, rotary positions. One op, so that neither the split nor the normed
// values are stored for the backward pass.
#pragma once

#include <array>
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "ops/paged_attention.h"

namespace antisd::inline ops {

struct RopeTable {
  at::Tensor cosine, sine;  // fp32 [positions, head_dim / 2]
};

struct AttentionShape {
  std::int64_t heads = 0;     // of queries
  std::int64_t kv_heads = 0;  // of keys and values
  std::int64_t head_dim = 0;
};

enum class QkNorm {
  kNone,
  kHead,        // over each head (Qwen3)
  kProjection,  // over all heads of a token together (Olmo-3)
};

// qkv: [tokens, (heads + 2 kv_heads) * head_dim], queries first. q_norm, k_norm: [head_dim], or the
// projection's width, or undefined. positions: int32 [tokens]. Returns {q [tokens, heads,
// head_dim], k [tokens, kv_heads, head_dim], v like k}; v may be a view of qkv.
std::array<at::Tensor, 3> attention_inputs(const at::Tensor& qkv, const AttentionShape& shape,
                                           QkNorm norm, const at::Tensor& q_norm,
                                           const at::Tensor& k_norm, double eps,
                                           const RopeTable& rope, const at::Tensor& positions);

// Where the keys and values of new tokens go when sampling; see store_kv().
struct CacheTarget {
  const PagedKv& kv;
  const at::Tensor& slots;
};

// The same, but keys and values go to the cache; returns q. No gradients.
at::Tensor attention_inputs_to_cache(const at::Tensor& qkv, const AttentionShape& shape,
                                     QkNorm norm, const at::Tensor& q_norm,
                                     const at::Tensor& k_norm, double eps, const RopeTable& rope,
                                     const at::Tensor& positions, const CacheTarget& cache);

}  // namespace antisd::inline ops
