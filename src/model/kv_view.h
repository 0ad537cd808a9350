// The model's view of a cache of keys and values: what a pass over new tokens needs to know of the
// pages, which inference/kv_pool.h owns.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/attention.h"
#include "ops/paged_attention.h"

namespace antisd::inline model {

using KvView = std::vector<PagedKv>;  // one per layer

// New tokens of one or several sequences, any number of each; their earlier tokens are in the
// cache.
struct CacheExtension {
  at::Tensor ids;          // int64 [tokens]
  at::Tensor positions;    // int32 [tokens]
  at::Tensor slots;        // int64 [tokens]: cache slots of their keys and values, see store_kv()
  AttentionLayout layout;  // key_rows are cache slots, including the new tokens' own
  std::int64_t longest_sequence = 0;
};

// One new token of each sequence.
struct DecodeStep {
  at::Tensor ids;        // int64 [n]
  at::Tensor positions;  // int32 [n]
  at::Tensor slots;      // int64 [n]
  PageTable table;       // lengths = positions + 1
  std::int64_t longest_sequence = 0;
};

}  // namespace antisd::inline model
