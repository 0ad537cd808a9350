// Causal attention of packed sequences: queries, keys and values lie end to end, no padding
// anywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "ops/gradients.h"

namespace antisd::inline ops {

struct RaggedTables;

// Of the sums over queries in a backward pass on a GPU. On a CPU the order is always fixed.
enum class SumOrder {
  kAny,    // gradients may differ in their last digits from run to run
  kFixed,  // the same operands give the same bits
};

// Which rows belong together. Sequence i has the queries [query_offsets[i], query_offsets[i + 1])
// and the keys [key_offsets[i], key_offsets[i + 1]); the last query sees the last key, the one
// before it the last but one. With as many keys as queries that is plain causal attention; with
// more, the first keys are a prefix computed elsewhere, e.g. a prompt that several responses share.
struct AttentionLayout {
  std::vector<std::int32_t> query_offsets, key_offsets;  // on the host
  at::Tensor device_query_offsets, device_key_offsets;   // int32, the same on the device
  std::int64_t longest_query = 0, longest_key = 0;
  // Row of k and v for each key, int64; undefined where keys are the queries' own rows in order.
  at::Tensor key_rows;
  SumOrder sums = SumOrder::kAny;
  // What cuDNN's ragged kernels need besides, made by the first layer that runs on them.
  mutable std::shared_ptr<const RaggedTables> ragged_tables;
};

// The code that computes it on a GPU.
enum class AttentionCode {
  kChosen,  // by card and shape (ops/attention_choice.h)
  kPacked,  // flash attention of torch, any lengths
  kDense,   // cuDNN through torch, one length for all
  kRagged,  // cuDNN through its frontend, any lengths (ops/cuda_ragged_attention.h)
};

// What a backward pass needs of a forward one besides its operands. A layer that is recomputed for
// its gradients keeps this from the first time, so that attention, whose cost grows with the square
// of the length, runs once.
struct AttentionKept {
  at::Tensor out;               // [queries, heads, head_dim]
  at::Tensor lse;               // log-sum-exp of each query's scores
  at::Tensor extra_a, extra_b;  // what the GPU's libraries hand from forward to backward
};

// q: [queries, heads, head_dim]; k, v: [rows, kv_heads, head_dim]; heads a multiple of kv_heads. A
// query sees its own key and those before it, at most `window` keys in all (0: no bound). Returns
// [queries, heads, head_dim]. With `kept`, a first call fills it, whether it records gradients or
// not, and a second one, with the same operands, takes its result from it and empties it.
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const AttentionLayout& layout, std::int64_t window, double scale,
                     Gradients gradients, AttentionKept* kept = nullptr,
                     AttentionCode code = AttentionCode::kChosen);

}  // namespace antisd::inline ops
