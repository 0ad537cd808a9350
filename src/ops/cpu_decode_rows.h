// Attention of one new token over the pages of its sequence on a CPU, on raw fp32 rows.
#pragma once

#include <cstdint>

namespace antisd::inline ops {

// One layer's pages as decode_attention() reads them.
struct PagedRows {
  const float *keys, *values;
  std::int64_t heads, kv_heads, head_dim, window;
  float scale;
};

// q, out: [heads, head_dim] of one sequence with `length` keys in `pages`.
void attend_row(const PagedRows& kv, const float* q, const std::int32_t* pages, std::int64_t length,
                float* out);

}  // namespace antisd::inline ops
