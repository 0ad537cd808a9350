// Attention of a decode step: one new token per sequence over keys and values that lie in pages. A
// page holds kPageTokens tokens of one sequence, or of several that began with the same tokens; its
// place in the cache is arbitrary and a table says which pages make up a sequence.
//
//   store_kv(k, v, slots, kv);                                  // the new tokens' own
//   const at::Tensor mixed = decode_attention(q, kv, table, window, scale);
//
// A chunk of a prompt needs nothing else: attention() with key_rows = slots reads the cache viewed
// as [pages * kPageTokens, kv_heads, head_dim]. Neither function has gradients.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace antisd::inline ops {

inline constexpr int kPageTokens = 32;

// The cache of one layer.
struct PagedKv {
  at::Tensor keys, values;  // [pages, kPageTokens, kv_heads, head_dim], contiguous
};

struct PageTable {
  at::Tensor pages;    // int32 [sequences, most_pages], contiguous; what lies behind a sequence's
                       // last page is not read
  at::Tensor lengths;  // int32 [sequences]: keys to read, the new token's own included; on a GPU 0
                       // leaves a sequence out, and its result is arbitrary
};

// q: [n, heads, head_dim], the newest token of each sequence; heads a multiple of the cache's. A
// query sees the last `window` keys (0: all). Returns [n, heads, head_dim].
at::Tensor decode_attention(const at::Tensor& q, const PagedKv& kv, const PageTable& table,
                            std::int64_t window, double scale);

// k, v: [tokens, kv_heads, head_dim]; slots: int64 [tokens], page * kPageTokens + place in the
// page; on a GPU a token whose slot is negative is left out.
void store_kv(const at::Tensor& k, const at::Tensor& v, const at::Tensor& slots, const PagedKv& kv);

}  // namespace antisd::inline ops
