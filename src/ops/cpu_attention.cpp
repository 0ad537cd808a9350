#include "ops/cpu_attention.h"

#include <limits>

#include "ops/simd.h"
#include "ops/tile_product.h"

namespace antisd::inline ops {
namespace {

constexpr std::int64_t kQueryTile = 24;  // four times the rows of a tile product
constexpr std::int64_t kQueriesPerTask =
    16 * kQueryTile;  // what one transposed copy of the keys serves

// Rows of scores have whole vectors; what lies outside [first, last) is masked rather than skipped,
// since a loop over the rest of a vector takes longer than the vectors.
struct RowSoftmax {
  float maximum, sum;
};

// Weights e^(scale (s - max)) in place on [first, last), zero elsewhere.
ANTISD_SIMD_CLONES RowSoftmax softmax_row(float* scores, std::int32_t width, std::int32_t first,
                                          std::int32_t last, float scale) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  float maximum = kNone;
#pragma omp simd reduction(max : maximum)
  for (std::int32_t i = 0; i < width; ++i) {
    const float score = simd_choose((i >= first) & (i < last), scores[i], kNone);
    scores[i] = score;
    maximum = score > maximum ? score : maximum;
  }
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int32_t i = 0; i < width; ++i) {
    scores[i] = simd_exp(scale * (scores[i] - maximum));
    sum += scores[i];
  }
  return {maximum * scale, sum};
}

// scores -> p = e^(scale scores - lse) in place on [first, last); dp -> scale p (dp - delta) in
// place; zero elsewhere.
ANTISD_SIMD_CLONES void gradient_row(float* scores, float* dp, std::int32_t width,
                                     std::int32_t first, std::int32_t last, float scale, float lse,
                                     float delta) {
#pragma omp simd
  for (std::int32_t i = 0; i < width; ++i) {
    const float p = simd_choose((i >= first) & (i < last), simd_exp(scale * scores[i] - lse), 0.0f);
    scores[i] = p;
    dp[i] = scale * p * (dp[i] - delta);
  }
}

ANTISD_SIMD_CLONES float dot(const float* a, const float* b, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i)
    sum += a[i] * b[i];
  return sum;
}

ANTISD_SIMD_CLONES void scale_row(float* x, std::int64_t n, float factor) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    x[i] *= factor;
}

// The keys that queries [begin, end) of a sequence see. Query i sees keys [max(0, i + shift + 1 -
// window), i + shift + 1), shift = keys - queries of the sequence.
struct KeyRange {
  std::int64_t shift, window, first, last;

  KeyRange(std::int64_t begin, std::int64_t end, std::int64_t shift, std::int64_t window)
      : shift(shift), window(window), first(first_of(begin)), last(last_of(end - 1)) {}
  std::int64_t first_of(std::int64_t query) const {
    return window > 0 ? std::max<std::int64_t>(0, query + shift + 1 - window) : 0;
  }
  std::int64_t last_of(std::int64_t query) const { return query + shift + 1; }
};

std::int32_t narrow(std::int64_t key) {  // keys are counted in int32 offsets
  return static_cast<std::int32_t>(key);
}

std::int64_t padded(std::int64_t columns) {
  return (columns + 15) / 16 * 16;
}

// A row of transposed keys: whole columns of 16 may be read from any key on; what they hold beyond
// the keys in question is masked.
std::int64_t transposed_width(std::int64_t keys) {
  return padded(keys) + 16;
}

// Memory of the calling thread, kept between calls.
float* scratch(int which, std::int64_t size) {
  thread_local std::vector<float> buffers[4];
  std::vector<float>& buffer = buffers[which];
  if (static_cast<std::int64_t>(buffer.size()) < size) buffer.resize(size);
  return buffer.data();
}

// Sequence, head and queries of a task of the forward pass.
struct Task {
  std::int64_t sequence, head, begin, end;
};

std::vector<Task> cut_tasks(const std::vector<std::int32_t>& query_offsets, std::int64_t heads) {
  std::vector<Task> tasks;
  for (std::size_t s = 0; s + 1 < query_offsets.size(); ++s) {
    const std::int64_t queries = query_offsets[s + 1] - query_offsets[s];
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t begin = 0; begin < queries; begin += kQueriesPerTask) {
        tasks.push_back({static_cast<std::int64_t>(s), head, begin,
                         std::min(queries, begin + kQueriesPerTask)});
      }
    }
  }
  return tasks;
}

}  // namespace

void cpu_attention_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const std::vector<std::int32_t>& query_offsets,
                           const std::vector<std::int32_t>& key_offsets, std::int64_t window,
                           double scale, at::Tensor& out, at::Tensor& lse) {
  const std::int64_t heads = q.size(1), kv_heads = k.size(1), dim = q.size(2), total = q.size(0);
  const std::int64_t group = heads / kv_heads, q_stride = heads * dim, k_stride = kv_heads * dim;
  const auto factor = static_cast<float>(scale);
  const std::vector<Task> tasks = cut_tasks(query_offsets, heads);
  const auto run = [&](const Task& task) {
    const std::int64_t q0 = query_offsets[task.sequence], k0 = key_offsets[task.sequence];
    const std::int64_t shift =
        (key_offsets[task.sequence + 1] - k0) - (query_offsets[task.sequence + 1] - q0);
    const float* query = q.const_data_ptr<float>() + q0 * q_stride + task.head * dim;
    const std::int64_t kv_at = k0 * k_stride + task.head / group * dim;
    float* output = out.data_ptr<float>() + q0 * q_stride + task.head * dim;
    float* logs = lse.data_ptr<float>() + task.head * total + q0;
    const KeyRange all(task.begin, task.end, shift, window);
    const std::int64_t columns = transposed_width(all.last - all.first);
    float* keys = scratch(0, dim * columns);  // [dim, columns]
    transpose_tile(k.const_data_ptr<float>() + kv_at + all.first * k_stride, k_stride,
                   all.last - all.first, dim, keys, columns, columns);
    for (std::int64_t row = task.begin; row < task.end; row += kQueryTile) {
      const std::int64_t rows = std::min(kQueryTile, task.end - row);
      const KeyRange range(row, row + rows, shift, window);
      const std::int64_t count = range.last - range.first, width = padded(count);
      float* scores = scratch(1, rows * width);
      tile_product(rows, width, dim, {query + row * q_stride, q_stride, 1},
                   keys + range.first - all.first, columns, scores, width, /*add=*/false);
      float inverse[kQueryTile];
      for (std::int64_t i = 0; i < rows; ++i) {
        const auto [maximum, sum] = softmax_row(
            scores + i * width, narrow(width), narrow(range.first_of(row + i) - range.first),
            narrow(range.last_of(row + i) - range.first), factor);
        logs[row + i] = maximum + std::log(sum);
        inverse[i] = 1.0f / sum;
      }
      tile_product(rows, dim, count, {scores, width, 1},
                   v.const_data_ptr<float>() + kv_at + range.first * k_stride, k_stride,
                   output + row * q_stride, q_stride, /*add=*/false);
      for (std::int64_t i = 0; i < rows; ++i)
        scale_row(output + (row + i) * q_stride, dim, inverse[i]);
    }
  };
  at::parallel_for(0, static_cast<std::int64_t>(tasks.size()), 1,
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t task = begin; task < end; ++task)
                       run(tasks[task]);
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
  const auto factor = static_cast<float>(scale);
  // A task owns a kv head of a sequence, so that dk and dv are summed in a fixed order by one
  // thread.
  const auto run = [&](std::int64_t sequence, std::int64_t kv_head) {
    const std::int64_t q0 = query_offsets[sequence], queries = query_offsets[sequence + 1] - q0;
    const std::int64_t k0 = key_offsets[sequence], keys = key_offsets[sequence + 1] - k0;
    const std::int64_t kv_at = k0 * k_stride + kv_head * dim, columns = transposed_width(keys);
    const float* key = k.const_data_ptr<float>() + kv_at;
    float* keys_by_column = scratch(0, dim * columns);  // [dim, columns]
    float* values_by_column = scratch(1, dim * columns);
    transpose_tile(key, k_stride, keys, dim, keys_by_column, columns, columns);
    transpose_tile(v.const_data_ptr<float>() + kv_at, k_stride, keys, dim, values_by_column,
                   columns, columns);
    for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      const float* logs = lse.const_data_ptr<float>() + head * total + q0;
      for (std::int64_t row = 0; row < queries; row += kQueryTile) {
        const std::int64_t rows = std::min(kQueryTile, queries - row);
        const KeyRange range(row, row + rows, keys - queries, window);
        const std::int64_t count = range.last - range.first, width = padded(count);
        const std::int64_t q_at = (q0 + row) * q_stride + head * dim;
        const std::int64_t k_at = kv_at + range.first * k_stride;
        const float* query = q.const_data_ptr<float>() + q_at;
        const float* gradient = dout.const_data_ptr<float>() + q_at;
        float* p = scratch(2, rows * width);
        float* dp = scratch(3, rows * width);
        tile_product(rows, width, dim, {query, q_stride, 1}, keys_by_column + range.first, columns,
                     p, width, /*add=*/false);
        tile_product(rows, width, dim, {gradient, q_stride, 1}, values_by_column + range.first,
                     columns, dp, width, /*add=*/false);
        for (std::int64_t i = 0; i < rows; ++i) {
          const float delta =
              dot(gradient + i * q_stride, out.const_data_ptr<float>() + q_at + i * q_stride, dim);
          gradient_row(p + i * width, dp + i * width, narrow(width),
                       narrow(range.first_of(row + i) - range.first),
                       narrow(range.last_of(row + i) - range.first), factor, logs[row + i], delta);
        }
        tile_product(rows, dim, count, {dp, width, 1}, key + range.first * k_stride, k_stride,
                     dq.data_ptr<float>() + q_at, q_stride, /*add=*/false);
        tile_product(count, dim, rows, {dp, 1, width}, query, q_stride, dk.data_ptr<float>() + k_at,
                     k_stride, /*add=*/true);
        tile_product(count, dim, rows, {p, 1, width}, gradient, q_stride,
                     dv.data_ptr<float>() + k_at, k_stride, /*add=*/true);
      }
    }
  };
  at::parallel_for(0, sequences * kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task)
      run(task / kv_heads, task % kv_heads);
  });
}

}  // namespace antisd::inline ops
