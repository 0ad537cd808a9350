#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "ops/kernels/element_type.h"

namespace antisd::inline ops {

// One new query per sequence over keys and values in pages. A key of token i, head h lies at
// (page_of(i) * page_tokens + i % page_tokens) * kv_heads * head_dim + h * head_dim.
struct DecodeAttentionShape {
  int sequences, heads, kv_heads, head_dim;
  int page_tokens;  // a multiple of 16
  int most_pages;   // entries of a row of the page table
  int window;       // keys a query sees, its own included; 0: all
};

// Floats of partial results, and counters (which must be 0 before the first call; each call leaves
// them 0).
struct DecodeWorkspace {
  std::int64_t floats, counters;
};
DecodeWorkspace decode_attention_workspace(const DecodeAttentionShape& shape);

// 16 bits and head_dim 64 or 128: the work is cut into equal pieces on the device, by the lengths,
// so that a captured graph stays valid while they grow. Sums run in a fixed order. Any other shape
// or precision: a plain kernel. q, out: [sequences, heads, head_dim]; lengths: keys of each
// sequence; 0 leaves its row of `out` untouched.
void launch_decode_attention(ElementType type, const DecodeAttentionShape& shape, const void* q,
                             const void* keys, const void* values, const std::int32_t* pages,
                             const std::int32_t* lengths, double scale, void* out, float* partials,
                             std::int32_t* counters, cudaStream_t stream);

}  // namespace antisd::inline ops
