// Shared by the two kernels of sampling.
#pragma once

#include "ops/kernels/sampling.h"

namespace antisd::inline ops {

// Statistics of a run of one row's logits: the largest, and the sums of exp(z - maximum) and of
// exp((z - maximum) / temperature).
struct RowSegment {
  float maximum, raw, tempered;
  std::int32_t first_of_maximum;  // id; set only for greedy sampling
};

#ifdef __CUDACC__
struct RowTotals {
  float maximum;
  float log_raw;    // log of the sum of exp(z - maximum)
  double tempered;  // sum of exp((z - maximum) / temperature)
};

__device__ __forceinline__ double segment_mass(const RowSegment& part, float maximum,
                                               float inverse_temperature) {
  return part.tempered * exp(static_cast<double>(part.maximum - maximum) * inverse_temperature);
}

// In the order of segments, so the bits are reproducible.
__device__ __forceinline__ RowTotals row_totals(const RowSegment* parts, int segments,
                                                float inverse_temperature) {
  float maximum = parts[0].maximum;
  for (int s = 1; s < segments; ++s)
    maximum = fmaxf(maximum, parts[s].maximum);
  double raw = 0, tempered = 0;
  for (int s = 0; s < segments; ++s) {
    raw += parts[s].raw * exp(static_cast<double>(parts[s].maximum - maximum));
    tempered += segment_mass(parts[s], maximum, inverse_temperature);
  }
  return {maximum, static_cast<float>(log(raw)), tempered};
}
#endif

// Draws with top-k, top-p and min-p; `parts` hold the rows' segments.
void launch_filtered_draw(const float* logits, std::int64_t rows, std::int64_t stride,
                          int vocabulary, int segments, float inverse_temperature,
                          const SamplingRule& rule, const double* noise, const RowSegment* parts,
                          std::int32_t* ids, float* logp, float* raw_logp, cudaStream_t stream);

}  // namespace antisd::inline ops
