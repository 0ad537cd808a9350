#include "ops/cpu_attention.h"

#include <limits>

#include "ops/blas.h"
#include "ops/simd.h"

namespace antisd {
namespace {

constexpr std::int64_t kQueryBlock = 64;

// Softmax over scores[first, last) in place, zero elsewhere; returns the log-sum-exp.
ANTISD_SIMD_CLONES float softmax_row(float* scores, std::int64_t columns, std::int64_t first,
                                     std::int64_t last) {
  float maximum = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : maximum)
  for (std::int64_t i = first; i < last; ++i)
    maximum = scores[i] > maximum ? scores[i] : maximum;
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = first; i < last; ++i) {
    scores[i] = simd_exp(scores[i] - maximum);
    sum += scores[i];
  }
  const float inverse = 1.0f / sum;
#pragma omp simd
  for (std::int64_t i = first; i < last; ++i)
    scores[i] *= inverse;
  for (std::int64_t i = 0; i < first; ++i)
    scores[i] = 0;
  for (std::int64_t i = last; i < columns; ++i)
    scores[i] = 0;
  return maximum + std::log(sum);
}

// scores -> p = e^(scores - lse) in place on [first, last); dp -> p (dp - delta) in place; zero
// elsewhere.
ANTISD_SIMD_CLONES void gradient_row(float* scores, float* dp, std::int64_t columns,
                                     std::int64_t first, std::int64_t last, float lse,
                                     float delta) {
#pragma omp simd
  for (std::int64_t i = first; i < last; ++i) {
    scores[i] = simd_exp(scores[i] - lse);
    dp[i] = scores[i] * (dp[i] - delta);
  }
  for (std::int64_t i = 0; i < first; ++i)
    scores[i] = dp[i] = 0;
  for (std::int64_t i = last; i < columns; ++i)
    scores[i] = dp[i] = 0;
}

ANTISD_SIMD_CLONES float dot(const float* a, const float* b, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i)
    sum += a[i] * b[i];
  return sum;
}

// The keys that a block of queries sees. Query row i (within its sequence) sees keys
// [max(0, i + shift + 1 - window), i + shift + 1), shift = keys - queries of the sequence.
struct Block {
  std::int64_t begin, rows;           // queries within the sequence
  std::int64_t first_key, key_count;  // keys that any of them sees
  std::int64_t shift, window;

  Block(std::int64_t begin, std::int64_t queries, std::int64_t keys, std::int64_t window)
      : begin(begin),
        rows(std::min(kQueryBlock, queries - begin)),
        shift(keys - queries),
        window(window) {
    first_key = first_of(0);
    key_count = begin + rows + shift - first_key;
  }
  std::int64_t first_of(std::int64_t row) const {  // absolute key
    return window > 0 ? std::max<std::int64_t>(0, begin + row + shift + 1 - window) : 0;
  }
  std::int64_t last_of(std::int64_t row) const { return begin + row + shift + 1; }
};

std::vector<float>& scratch(int which) {
  thread_local std::vector<float> buffers[2];
  return buffers[which];
}

float* grown(std::vector<float>& buffer, std::int64_t size) {
  if (static_cast<std::int64_t>(buffer.size()) < size) buffer.resize(size);
  return buffer.data();
}

}  // namespace

void cpu_attention_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const std::vector<std::int32_t>& query_offsets,
                           const std::vector<std::int32_t>& key_offsets, std::int64_t window,
                           double scale, at::Tensor& out, at::Tensor& lse) {
  const std::int64_t heads = q.size(1), kv_heads = k.size(1), dim = q.size(2), total = q.size(0);
  const std::int64_t group = heads / kv_heads, q_stride = heads * dim, k_stride = kv_heads * dim;
  const auto sequences = static_cast<std::int64_t>(query_offsets.size()) - 1;
  at::parallel_for(0, sequences * heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t sequence = task / heads, head = task % heads;
      const std::int64_t q0 = query_offsets[sequence], queries = query_offsets[sequence + 1] - q0;
      const std::int64_t k0 = key_offsets[sequence], keys = key_offsets[sequence + 1] - k0;
      const float* query = q.const_data_ptr<float>() + q0 * q_stride + head * dim;
      const float* key = k.const_data_ptr<float>() + k0 * k_stride + head / group * dim;
      const float* value = v.const_data_ptr<float>() + k0 * k_stride + head / group * dim;
      float* output = out.data_ptr<float>() + q0 * q_stride + head * dim;
      float* logs = lse.data_ptr<float>() + head * total + q0;
      for (std::int64_t row = 0; row < queries; row += kQueryBlock) {
        const Block block(row, queries, keys, window);
        float* scores = grown(scratch(0), block.rows * block.key_count);
        matrix_product(Transpose::kNo, Transpose::kYes, block.rows, block.key_count, dim,
                       static_cast<float>(scale), query + row * q_stride, q_stride,
                       key + block.first_key * k_stride, k_stride, 0, scores, block.key_count);
        for (std::int64_t i = 0; i < block.rows; ++i) {
          logs[row + i] =
              softmax_row(scores + i * block.key_count, block.key_count,
                          block.first_of(i) - block.first_key, block.last_of(i) - block.first_key);
        }
        matrix_product(Transpose::kNo, Transpose::kNo, block.rows, dim, block.key_count, 1, scores,
                       block.key_count, value + block.first_key * k_stride, k_stride, 0,
                       output + row * q_stride, q_stride);
      }
    }
  });
}

void cpu_attention_backward(const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const at::Tensor& out, const at::Tensor& lse,
                            const std::vector<std::int32_t>& query_offsets,
                            const std::vector<std::int32_t>& key_offsets, std::int64_t window,
                            double scale, at::Tensor& dq, at::Tensor& dk, at::Tensor& dv) {
  const std::int64_t heads = q.size(1), kv_heads = k.size(1), dim = q.size(2), total = q.size(0);
  const std::int64_t group = heads / kv_heads, q_stride = heads * dim, k_stride = kv_heads * dim;
  const auto sequences = static_cast<std::int64_t>(query_offsets.size()) - 1;
  // A task owns a kv head of a sequence, so that dk and dv are summed in a fixed order by one
  // thread.
  at::parallel_for(0, sequences * kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t sequence = task / kv_heads, kv_head = task % kv_heads;
      const std::int64_t q0 = query_offsets[sequence], queries = query_offsets[sequence + 1] - q0;
      const std::int64_t k0 = key_offsets[sequence], keys = key_offsets[sequence + 1] - k0;
      const std::int64_t kv_at = k0 * k_stride + kv_head * dim;
      for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        const std::int64_t q_at = q0 * q_stride + head * dim;
        const float* logs = lse.const_data_ptr<float>() + head * total + q0;
        for (std::int64_t row = 0; row < queries; row += kQueryBlock) {
          const Block block(row, queries, keys, window);
          const std::int64_t n = block.key_count, at_q = q_at + row * q_stride;
          const std::int64_t at_k = kv_at + block.first_key * k_stride;
          const float* query = q.const_data_ptr<float>() + at_q;
          const float* key = k.const_data_ptr<float>() + at_k;
          const float* gradient = dout.const_data_ptr<float>() + at_q;
          float* p = grown(scratch(0), block.rows * n);
          float* dp = grown(scratch(1), block.rows * n);
          matrix_product(Transpose::kNo, Transpose::kYes, block.rows, n, dim,
                         static_cast<float>(scale), query, q_stride, key, k_stride, 0, p, n);
          matrix_product(Transpose::kNo, Transpose::kYes, block.rows, n, dim, 1, gradient, q_stride,
                         v.const_data_ptr<float>() + at_k, k_stride, 0, dp, n);
          for (std::int64_t i = 0; i < block.rows; ++i) {
            const float delta = dot(gradient + i * q_stride,
                                    out.const_data_ptr<float>() + at_q + i * q_stride, dim);
            gradient_row(p + i * n, dp + i * n, n, block.first_of(i) - block.first_key,
                         block.last_of(i) - block.first_key, logs[row + i], delta);
          }
          matrix_product(Transpose::kNo, Transpose::kNo, block.rows, dim, n,
                         static_cast<float>(scale), dp, n, key, k_stride, 0,
                         dq.data_ptr<float>() + at_q, q_stride);
          matrix_product(Transpose::kYes, Transpose::kNo, n, dim, block.rows,
                         static_cast<float>(scale), dp, n, query, q_stride, 1,
                         dk.data_ptr<float>() + at_k, k_stride);
          matrix_product(Transpose::kYes, Transpose::kNo, n, dim, block.rows, 1, p, n, gradient,
                         q_stride, 1, dv.data_ptr<float>() + at_k, k_stride);
        }
      }
    }
  });
}

}  // namespace antisd
