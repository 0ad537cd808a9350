#include "ops/cpu_decode_rows.h"

#include <limits>

#include "ops/paged_attention.h"
#include "ops/simd.h"

namespace antisd::inline ops {
namespace {

#define ANTISD_INLINE inline __attribute__((always_inline))

// The part of one page that a query sees.
struct PagePart {
  std::int64_t page, first, count;  // of its tokens
  std::int64_t at;                  // index of the first one among the scores
};

template <typename Body>
ANTISD_INLINE void for_page_parts(const std::int32_t* pages, std::int64_t first,
                                  std::int64_t length, const Body& body) {
  for (std::int64_t key = first; key < length;) {
    const std::int64_t offset = key % kPageTokens;
    const std::int64_t left = kPageTokens - offset, wanted = length - key;
    const std::int64_t count = wanted < left ? wanted : left;
    body(PagePart{pages[key / kPageTokens], offset, count, key - first});
    key += count;
  }
}

// Values of a query up to this size are prefetched into the L2 cache while its keys are read.
constexpr std::int64_t kPrefetchBytes = 256 << 10;
constexpr std::int64_t kLineFloats = 16;

// Adds halves pairwise: a simd reduction adds one lane after the other, which takes longer than the
// products of a head.
ANTISD_INLINE float sum_lanes(float (&x)[kLineFloats]) {
#pragma omp simd
  for (int i = 0; i < 8; ++i)
    x[i] += x[i + 8];
#pragma omp simd
  for (int i = 0; i < 4; ++i)
    x[i] += x[i + 4];
  return (x[0] + x[2]) + (x[1] + x[3]);
}

// kDim: the head size if it is known at compile time, or 0.
template <int kDim>
ANTISD_INLINE void attend(const PagedRows& kv, const float* q, const std::int32_t* pages,
                          std::int64_t length, float* scores, float* out) {
  const std::int64_t dim = kDim > 0 ? kDim : kv.head_dim;
  const std::int64_t group = kv.heads / kv.kv_heads, token = kv.kv_heads * dim;
  const std::int64_t first = kv.window > 0 && length > kv.window ? length - kv.window : 0;
  const std::int64_t count = length - first;
  const bool prefetch = count * token * static_cast<std::int64_t>(sizeof(float)) <= kPrefetchBytes;
  for_page_parts(pages, first, length, [&](const PagePart& part) {
    const std::int64_t at = (part.page * kPageTokens + part.first) * token;
    for (std::int64_t i = 0; i < part.count; ++i) {
      for (std::int64_t d = i * token; prefetch && d < (i + 1) * token; d += kLineFloats)
        __builtin_prefetch(kv.values + at + d, /*rw=*/0, /*locality=*/2);
      for (std::int64_t head = 0; head < kv.heads; ++head) {
        const float* key = kv.keys + at + i * token + head / group * dim;
        const float* query = q + head * dim;
        float lanes[kLineFloats] = {};
        std::int64_t d = 0;
        for (; d + kLineFloats <= dim; d += kLineFloats) {
#pragma omp simd
          for (std::int64_t lane = 0; lane < kLineFloats; ++lane)
            lanes[lane] += query[d + lane] * key[d + lane];
        }
        for (; d < dim; ++d)
          lanes[0] += query[d] * key[d];
        scores[head * count + part.at + i] = sum_lanes(lanes) * kv.scale;
      }
    }
  });
  for (std::int64_t head = 0; head < kv.heads; ++head) {
    float* row = scores + head * count;
    float maximum = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : maximum)
    for (std::int64_t i = 0; i < count; ++i)
      maximum = row[i] > maximum ? row[i] : maximum;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < count; ++i) {
      row[i] = simd_exp(row[i] - maximum);
      sum += row[i];
    }
    const float inverse = 1.0f / sum;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i)
      row[i] *= inverse;
  }
  for (std::int64_t i = 0; i < kv.heads * dim; ++i)
    out[i] = 0;
  // A few tokens at a time for all heads: memory is read in order, and sums are not loaded and
  // stored for every token.
  constexpr std::int64_t kAtATime = 4;
  for_page_parts(pages, first, length, [&](const PagePart& part) {
    const float* page = kv.values + (part.page * kPageTokens + part.first) * token;
    for (std::int64_t i = 0; i < part.count; i += kAtATime) {
      const std::int64_t tokens = part.count - i < kAtATime ? part.count - i : kAtATime;
      for (std::int64_t head = 0; head < kv.heads; ++head) {
        const float* value = page + i * token + head / group * dim;
        const float* weights = scores + head * count + part.at + i;
        float* sum = out + head * dim;
        if (tokens == kAtATime) {
          const float w0 = weights[0], w1 = weights[1], w2 = weights[2], w3 = weights[3];
#pragma omp simd
          for (std::int64_t d = 0; d < dim; ++d) {
            sum[d] += w0 * value[d] + w1 * value[token + d] + w2 * value[2 * token + d] +
                      w3 * value[3 * token + d];
          }
        } else {
          for (std::int64_t t = 0; t < tokens; ++t) {
#pragma omp simd
            for (std::int64_t d = 0; d < dim; ++d)
              sum[d] += weights[t] * value[t * token + d];
          }
        }
      }
    }
  });
}

ANTISD_SIMD_CLONES void attend_any(const PagedRows& kv, const float* q, const std::int32_t* pages,
                                   std::int64_t length, float* scores, float* out) {
  attend<0>(kv, q, pages, length, scores, out);
}
ANTISD_SIMD_CLONES void attend_32(const PagedRows& kv, const float* q, const std::int32_t* pages,
                                  std::int64_t length, float* scores, float* out) {
  attend<32>(kv, q, pages, length, scores, out);
}
ANTISD_SIMD_CLONES void attend_64(const PagedRows& kv, const float* q, const std::int32_t* pages,
                                  std::int64_t length, float* scores, float* out) {
  attend<64>(kv, q, pages, length, scores, out);
}
ANTISD_SIMD_CLONES void attend_128(const PagedRows& kv, const float* q, const std::int32_t* pages,
                                   std::int64_t length, float* scores, float* out) {
  attend<128>(kv, q, pages, length, scores, out);
}

}  // namespace

void attend_row(const PagedRows& kv, const float* q, const std::int32_t* pages, std::int64_t length,
                float* out) {
  thread_local std::vector<float> scores;
  const auto size = static_cast<std::size_t>(kv.heads * length);
  if (scores.size() < size) scores.resize(size + size / 2);
  switch (kv.head_dim) {
    case 32:
      return attend_32(kv, q, pages, length, scores.data(), out);
    case 64:
      return attend_64(kv, q, pages, length, scores.data(), out);
    case 128:
      return attend_128(kv, q, pages, length, scores.data(), out);
    default:
      return attend_any(kv, q, pages, length, scores.data(), out);
  }
}

}  // namespace antisd::inline ops
