#include "ops/kernels/formulas.cuh"
#include "ops/kernels/launch.h"
#include "ops/kernels/pack.cuh"
#include "ops/kernels/reduce.cuh"
#include "ops/kernels/token_scores.h"

namespace antisd::inline ops {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr unsigned kThreadLogits = 16;  // that a thread loads before it uses the first

struct LogitBlock {
  const float* logits;
  std::int64_t stride, rows, first_column;
  unsigned columns;  // written, padding included
  unsigned counted;  // columns below the end of the vocabulary
  const std::int32_t* targets;
  float inverse_temperature;
};

constexpr unsigned kElsewhere = 0xffffffffu;

// The target's column within the block.
__device__ __forceinline__ unsigned target_column(const LogitBlock& block, std::int64_t row) {
  const std::int64_t column = block.targets[row] - block.first_column;
  return column >= 0 && column < block.counted ? static_cast<unsigned>(column) : kElsewhere;
}

// One thread's share of a row of logits, N to an access.
template <int N>
__device__ __forceinline__ LogitFold fold_share(const float* logits, unsigned counted,
                                                float inverse_temperature) {
  constexpr unsigned kPacks = kThreadLogits / N;
  const unsigned packs = counted / N;
  LogitFold fold = empty_fold();
  for (unsigned first = threadIdx.x; first < packs; first += kThreads * kPacks) {
    float values[kThreadLogits];
#pragma unroll
    for (unsigned k = 0; k < kPacks; ++k) {
      const unsigned p = first + k * kThreads;
      float part[N];
      unpack(load_pack_if<N>(p < packs, logits + std::size_t{p} * N), part);
#pragma unroll
      for (int i = 0; i < N; ++i)
        values[k * N + i] = p < packs ? part[i] : -INFINITY;
    }
    add_logits(fold, values, inverse_temperature);
  }
  if (const unsigned last = packs * N + threadIdx.x; last < counted) {
    const float value[1] = {logits[last]};
    add_logits(fold, value, inverse_temperature);
  }
  return fold;
}

// A block of threads for each row.
template <int N>
__global__ void __launch_bounds__(kThreads)
    fold_logits_kernel(LogitBlock block, bool first, RowStatistics* statistics) {
  __shared__ float maxima[kWarps], sums[kWarps], shifted_sums[kWarps];
  for (std::int64_t row = blockIdx.x; row < block.rows; row += gridDim.x) {
    const float* logits = block.logits + row * block.stride;
    LogitFold fold = fold_share<N>(logits, block.counted, block.inverse_temperature);
    // Between two uses of an array, from row to row, stand the barriers of the other two.
    fold = raised(fold, block_max(fold.maximum, maxima));
    fold.sum = block_sum(fold.sum, sums);
    fold.shifted = block_sum(fold.shifted, shifted_sums);
    if (threadIdx.x != 0) continue;
    LogitSums total = sums_of(fold);
    float target = 0.0f;
    if (!first) {
      const RowStatistics before = statistics[row];
      total = merged({before.maximum, before.sum, before.weighted}, total);
      target = before.target;
    }
    if (const unsigned column = target_column(block, row); column != kElsewhere) {
      target = scaled_logit(logits[column], block.inverse_temperature);
    }
    statistics[row] = {total.maximum, total.sum, total.weighted, target};
  }
}

__global__ void __launch_bounds__(kThreads)
    finish_scores_kernel(const RowStatistics* statistics, std::int64_t rows, float* logp,
                         float* entropy, float* lse) {
  for (std::int64_t row = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; row < rows;
       row += std::int64_t{gridDim.x} * kThreads) {
    const RowStatistics s = statistics[row];
    const LogitSums sums = {s.maximum, s.sum, s.weighted};
    logp[row] = log_probability(sums, s.target);
    entropy[row] = entropy_of(sums);
    lse[row] = log_sum_exp(sums);
  }
}

// A block of threads for each tile of kThreads * kThreadLogits columns of a row. dlogits may be
// logits where both are fp32 and lie alike: a thread reads what it will write before it writes.
template <int N, typename T>
__global__ void __launch_bounds__(kThreads)
    logit_gradient_kernel(LogitBlock block, const float* lse, const float* entropy,
                          const float* dlogp, const float* dentropy, T* dlogits) {
  constexpr unsigned kPacks = kThreadLogits / N;
  constexpr unsigned kTile = kThreads * kPacks;
  const unsigned packs = block.columns / N, tiles = (packs + kTile - 1) / kTile;
  const std::int64_t work = block.rows * tiles;
  for (std::int64_t w = blockIdx.x; w < work; w += gridDim.x) {
    const std::int64_t row = w / tiles;
    const unsigned first = static_cast<unsigned>(w - row * tiles) * kTile + threadIdx.x;
    const float* logits = block.logits + row * block.stride;
    float values[kPacks][N];
#pragma unroll
    for (unsigned k = 0; k < kPacks; ++k) {
      const unsigned p = first + k * kThreads;
      if (p < packs) load_floats(logits + std::size_t{p} * N, values[k]);
    }
    const bool with_entropy = dentropy != nullptr;
    const GradientRow gradient = {lse[row], with_entropy ? entropy[row] : 0.0f, dlogp[row],
                                  with_entropy ? dentropy[row] : 0.0f};
    const unsigned target = target_column(block, row);
    T* out = dlogits + row * block.columns;
#pragma unroll
    for (unsigned k = 0; k < kPacks; ++k) {
      const unsigned p = first + k * kThreads;
      if (p >= packs) continue;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const unsigned column = p * N + i;
        const float dz =
            logit_gradient(values[k][i], column == target, gradient, block.inverse_temperature);
        values[k][i] = column < block.counted ? dz : 0.0f;
      }
      store_pack(out + std::size_t{p} * N, make_pack<T>(values[k]));
    }
  }
}

LogitBlock block_of(const float* logits, std::int64_t stride, std::int64_t rows,
                    std::int64_t columns, std::int64_t first_column, std::int64_t vocabulary,
                    const std::int32_t* targets, float inverse_temperature) {
  const std::int64_t counted = std::clamp<std::int64_t>(vocabulary - first_column, 0, columns);
  return {logits,
          stride,
          rows,
          first_column,
          static_cast<unsigned>(columns),
          static_cast<unsigned>(counted),
          targets,
          inverse_temperature};
}

template <int N, typename T>
void start_gradient(const LogitBlock& block, const float* lse, const float* entropy,
                    const float* dlogp, const float* dentropy, T* dlogits, cudaStream_t stream) {
  const std::int64_t tiles = ceil_div(block.columns / N, kThreads * (kThreadLogits / N));
  logit_gradient_kernel<N><<<grid_for(block.rows * tiles, 1), kThreads, 0, stream>>>(
      block, lse, entropy, dlogp, dentropy, dlogits);
}

template <typename T>
void run_gradient(const LogitBlock& block, const float* lse, const float* entropy,
                  const float* dlogp, const float* dentropy, void* dlogits, cudaStream_t stream) {
  const bool wide = block.columns % kWidePack<T> == 0 && block.stride % 4 == 0 &&
                    aligned_to_16(block.logits, dlogits);
  (wide ? start_gradient<kWidePack<T>, T> : start_gradient<1, T>)(block, lse, entropy, dlogp,
                                                                  dentropy,
                                                                  static_cast<T*>(dlogits), stream);
}

}  // namespace

void launch_fold_logits(const float* logits, std::int64_t stride, std::int64_t rows,
                        std::int64_t columns, std::int64_t first_column, std::int64_t vocabulary,
                        const std::int32_t* targets, float inverse_temperature, bool first,
                        RowStatistics* statistics, cudaStream_t stream) {
  if (rows == 0) return;
  const LogitBlock block = block_of(logits, stride, rows, columns, first_column, vocabulary,
                                    targets, inverse_temperature);
  const bool wide = stride % 4 == 0 && aligned_to_16(logits);
  const auto kernel = wide ? fold_logits_kernel<4> : fold_logits_kernel<1>;
  kernel<<<grid_for(rows, 1), kThreads, 0, stream>>>(block, first, statistics);
  check_launch("fold_logits");
}

void launch_finish_scores(const RowStatistics* statistics, std::int64_t rows, float* logp,
                          float* entropy, float* lse, cudaStream_t stream) {
  if (rows == 0) return;
  finish_scores_kernel<<<grid_for(rows, kThreads), kThreads, 0, stream>>>(statistics, rows, logp,
                                                                          entropy, lse);
  check_launch("finish_scores");
}

void launch_logit_gradient(ElementType type, const float* logits, std::int64_t stride,
                           std::int64_t rows, std::int64_t columns, std::int64_t first_column,
                           std::int64_t vocabulary, const std::int32_t* targets, const float* lse,
                           const float* entropy, const float* dlogp, const float* dentropy,
                           float inverse_temperature, void* dlogits, cudaStream_t stream) {
  if (rows == 0 || columns == 0) return;
  const LogitBlock block = block_of(logits, stride, rows, columns, first_column, vocabulary,
                                    targets, inverse_temperature);
  with_element(type, [&](auto element) {
    run_gradient<decltype(element)>(block, lse, entropy, dlogp, dentropy, dlogits, stream);
  });
  check_launch("logit_gradient");
}

}  // namespace antisd::inline ops
