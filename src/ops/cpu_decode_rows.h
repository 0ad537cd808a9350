// What a decode step does to one token on a CPU, on raw fp32 rows: small models spend their time in
// many small operations, so the steps of a token follow each other while its row is in the cache.
#pragma once

#include <cstdint>

namespace antisd {

// y = x / rms(x) * weight; y may be x.
void rms_norm_row(const float* x, const float* weight, std::int64_t width, float eps, float* y);

// Rotates `heads` heads in place; cosine, sine: [head_dim / 2] of the token's position.
void rotate_row(float* x, std::int64_t heads, std::int64_t head_dim, const float* cosine,
                const float* sine);

// y = silu(gate) * up, gate_up: gate first; y may be gate_up.
void gate_row(const float* gate_up, std::int64_t width, float* y);

void add_row(const float* x, std::int64_t width, float* y);  // y += x

// One layer's pages as decode_attention() reads them.
struct PagedRows {
  const float *keys, *values;
  std::int64_t heads, kv_heads, head_dim, window;
  float scale;
};

// q, out: [heads, head_dim] of one sequence with `length` keys in `pages`.
void attend_row(const PagedRows& kv, const float* q, const std::int32_t* pages, std::int64_t length,
                float* out);

}  // namespace antisd
