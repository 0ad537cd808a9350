#include "ops/cpu_token_scores.h"

#include <limits>

#include "ops/simd.h"

namespace antisd::inline ops {
namespace {

struct RowSums {
  float maximum, sum, weighted;
};

// Maximum of z = logits / temperature, then sums of e^(z - m) and (z - m) e^(z - m): differences
// keep the weighted sum small and exact where the logits are large.
ANTISD_SIMD_CLONES RowSums sum_row(const float* logits, std::int64_t columns,
                                   float inverse_temperature) {
  float maximum = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : maximum)
  for (std::int64_t i = 0; i < columns; ++i)
    maximum = logits[i] > maximum ? logits[i] : maximum;
  maximum *= inverse_temperature;
  float sum = 0, weighted = 0;
#pragma omp simd reduction(+ : sum, weighted)
  for (std::int64_t i = 0; i < columns; ++i) {
    const float difference = logits[i] * inverse_temperature - maximum;
    const float e = simd_exp(difference);
    sum += e;
    weighted += simd_choose(e > 0, difference * e, 0);
  }
  return {maximum, sum, weighted};
}

ANTISD_SIMD_CLONES void gradient_row(const float* logits, std::int64_t columns,
                                     float inverse_temperature, float lse, float entropy,
                                     float dlogp, float dentropy, float* dlogits) {
#pragma omp simd
  for (std::int64_t i = 0; i < columns; ++i) {
    const float log_p = logits[i] * inverse_temperature - lse;
    const float p = simd_exp(log_p);
    const float from_entropy = simd_choose(p > 0, dentropy * (log_p + entropy), 0);
    dlogits[i] = -p * (dlogp + from_entropy) * inverse_temperature;
  }
}

}  // namespace

void cpu_fold_logits(const float* logits, std::int64_t rows, std::int64_t columns,
                     std::int64_t first_column, const std::int32_t* targets,
                     float inverse_temperature, bool first, float* statistics) {
  at::parallel_for(0, rows, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float* z = logits + row * columns;
      float* s = statistics + row * 4;
      if (first) s[0] = -std::numeric_limits<float>::infinity(), s[1] = s[2] = s[3] = 0;
      const RowSums block = sum_row(z, columns, inverse_temperature);
      // Both sums move to the larger maximum; `weighted` is kept relative to the running maximum.
      const float maximum = std::max(s[0], block.maximum);
      const auto rescaled = [&](float m, float sum, float weighted) {
        const float shift = m - maximum;  // <= 0
        const float factor = std::exp(shift);
        return std::pair(factor * sum, factor > 0 ? factor * (weighted + shift * sum) : 0.0f);
      };
      const auto [old_sum, old_weighted] = rescaled(s[0], s[1], s[2]);
      const auto [new_sum, new_weighted] = rescaled(block.maximum, block.sum, block.weighted);
      s[0] = maximum;
      s[1] = old_sum + new_sum;
      s[2] = old_weighted + new_weighted;
      const std::int64_t target = targets[row] - first_column;
      if (target >= 0 && target < columns) s[3] = z[target] * inverse_temperature;
    }
  });
}

void cpu_finish_scores(const float* statistics, std::int64_t rows, float* logp, float* entropy,
                       float* lse) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* s = statistics + row * 4;
    const float log_sum = std::log(s[1]);
    lse[row] = s[0] + log_sum;
    logp[row] = s[3] - lse[row];
    // H = lse - sum z p; with z relative to the maximum it is log(sum) - weighted / sum.
    const float h = log_sum - s[2] / s[1];
    entropy[row] = h < 0 ? 0 : h;
  }
}

void cpu_logit_gradient(const float* logits, std::int64_t rows, std::int64_t columns,
                        std::int64_t first_column, const std::int32_t* targets, const float* lse,
                        const float* entropy, const float* dlogp, const float* dentropy,
                        float inverse_temperature, float* dlogits) {
  at::parallel_for(0, rows, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* out = dlogits + row * columns;
      gradient_row(logits + row * columns, columns, inverse_temperature, lse[row], entropy[row],
                   dlogp[row], dentropy == nullptr ? 0 : dentropy[row], out);
      const std::int64_t target = targets[row] - first_column;
      if (target >= 0 && target < columns) out[target] += dlogp[row] * inverse_temperature;
    }
  });
}

}  // namespace antisd::inline ops
