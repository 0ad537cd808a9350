#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "ops/kernels/element_type.h"

namespace antisd::inline ops {

// Running statistics of one row of logits z over the vocabulary blocks seen so far, in units of
// logits / temperature. log-sum-exp = maximum + log(sum); entropy = log(sum) - weighted / sum.
struct RowStatistics {
  float maximum;   // m
  float sum;       // sum of e^(z - m)
  float weighted;  // sum of (z - m) e^(z - m)
  float target;    // z of the target token, 0 until its block was seen
};

// Folds one block of logits into `statistics` [rows]. logits: fp32 [rows, columns], rows `stride`
// elements apart, columns the vocabulary entries first_column .. first_column + columns - 1;
// targets: int32 [rows], vocabulary ids. `first`: the statistics begin with this block. Columns at
// or above `vocabulary` (padding) do not count.
void launch_fold_logits(const float* logits, std::int64_t stride, std::int64_t rows,
                        std::int64_t columns, std::int64_t first_column, std::int64_t vocabulary,
                        const std::int32_t* targets, float inverse_temperature, bool first,
                        RowStatistics* statistics, cudaStream_t stream);

// logp = target - lse; entropy is at least 0; lse is kept for the backward pass.
void launch_finish_scores(const RowStatistics* statistics, std::int64_t rows, float* logp,
                          float* entropy, float* lse, cudaStream_t stream);

// Logits of a block -> their gradient:
//   dz = (dlogp (1_target - p) - dentropy p (log p + H)) / temperature
// written as `type` [rows, columns], contiguous; padded columns get 0. dentropy may be null, and
// entropy with it. dlogits may be logits where `type` is fp32 and stride is columns.
void launch_logit_gradient(ElementType type, const float* logits, std::int64_t stride,
                           std::int64_t rows, std::int64_t columns, std::int64_t first_column,
                           std::int64_t vocabulary, const std::int32_t* targets, const float* lse,
                           const float* entropy, const float* dlogp, const float* dentropy,
                           float inverse_temperature, void* dlogits, cudaStream_t stream);

}  // namespace antisd::inline ops
