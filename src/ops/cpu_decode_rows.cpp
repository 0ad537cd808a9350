#include "ops/cpu_decode_rows.h"

#include <limits>

#include "ops/paged_attention.h"
#include "ops/simd.h"

namespace antisd {
namespace {

#define ANTISD_INLINE inline __attribute__((always_inline))

// The part of one page that a query sees.
struct PagePart {
  std::int64_t page, first, count;  // of its tokens
  std::int64_t at;                  // the first one's place among the scores
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

// A head of a compile-time width keeps its query and its sum in registers; 0 is any width.
template <int kDim>
ANTISD_INLINE void attend(const PagedRows& kv, const float* q, const std::int32_t* pages,
                          std::int64_t length, float* scores, float* out) {
  const std::int64_t dim = kDim > 0 ? kDim : kv.head_dim;
  const std::int64_t group = kv.heads / kv.kv_heads, token = kv.kv_heads * dim;
  const std::int64_t first = kv.window > 0 && length > kv.window ? length - kv.window : 0;
  const std::int64_t count = length - first;
  for_page_parts(pages, first, length, [&](const PagePart& part) {
    const float* page = kv.keys + (part.page * kPageTokens + part.first) * token;
    for (std::int64_t i = 0; i < part.count; ++i) {
      for (std::int64_t head = 0; head < kv.heads; ++head) {
        const float* key = page + i * token + head / group * dim;
        const float* query = q + head * dim;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t d = 0; d < dim; ++d)
          sum += query[d] * key[d];
        scores[head * count + part.at + i] = sum * kv.scale;
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
  for_page_parts(pages, first, length, [&](const PagePart& part) {
    const float* page = kv.values + (part.page * kPageTokens + part.first) * token;
    for (std::int64_t head = 0; head < kv.heads; ++head) {
      const float* value = page + head / group * dim;
      const float* weights = scores + head * count + part.at;
      float* sum = out + head * dim;
      if constexpr (kDim > 0) {
        float sums[kDim];
        for (int d = 0; d < kDim; ++d)
          sums[d] = sum[d];
        for (std::int64_t i = 0; i < part.count; ++i) {
#pragma omp simd
          for (int d = 0; d < kDim; ++d)
            sums[d] += weights[i] * value[i * token + d];
        }
        for (int d = 0; d < kDim; ++d)
          sum[d] = sums[d];
      } else {
        for (std::int64_t i = 0; i < part.count; ++i) {
#pragma omp simd
          for (std::int64_t d = 0; d < dim; ++d)
            sum[d] += weights[i] * value[i * token + d];
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

ANTISD_SIMD_CLONES void rms_norm_row(const float* x, const float* weight, std::int64_t width,
                                     float eps, float* y) {
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t i = 0; i < width; ++i)
    squares += x[i] * x[i];
  const float inverse = 1.0f / __builtin_sqrtf(squares / static_cast<float>(width) + eps);
#pragma omp simd
  for (std::int64_t i = 0; i < width; ++i)
    y[i] = x[i] * inverse * weight[i];
}

ANTISD_SIMD_CLONES void rotate_row(float* x, std::int64_t heads, std::int64_t head_dim,
                                   const float* cosine, const float* sine) {
  const std::int64_t half = head_dim / 2;
  for (std::int64_t head = 0; head < heads; ++head) {
    float* row = x + head * head_dim;
#pragma omp simd
    for (std::int64_t i = 0; i < half; ++i) {
      const float a = row[i], b = row[half + i];
      row[i] = a * cosine[i] - b * sine[i];
      row[half + i] = b * cosine[i] + a * sine[i];
    }
  }
}

ANTISD_SIMD_CLONES void gate_row(const float* gate_up, std::int64_t width, float* y) {
  const float* up = gate_up + width;
#pragma omp simd
  for (std::int64_t i = 0; i < width; ++i)
    y[i] = gate_up[i] / (1.0f + simd_exp(-gate_up[i])) * up[i];
}

ANTISD_SIMD_CLONES void add_row(const float* x, std::int64_t width, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < width; ++i)
    y[i] += x[i];
}

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

}  // namespace antisd
