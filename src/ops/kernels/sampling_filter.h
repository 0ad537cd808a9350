// Shared by the kernels of sampling.
#pragma once

#include "ops/kernels/sampling.h"

namespace antisd::inline ops {

// Statistics of a run of one row's logits: the largest, and the sums of exp(z - maximum) and of
// exp((z - maximum) / temperature).
struct RowSegment {
  float maximum, raw, tempered;
  std::int32_t first_of_maximum;  // id; set only for greedy sampling
};

inline constexpr int kSegment = 4096;  // logits

struct FilterArguments {
  const float* logits;
  std::int64_t rows, stride;
  int vocabulary, segments;
  float inverse_temperature;
  SamplingRule rule;
  const double* noise;
  const RowSegment* parts;  // [rows, segments]
  std::int32_t* ids;
  float *logp, *raw_logp;
};

std::int64_t filter_workspace(std::int64_t rows, std::int64_t vocabulary);

// Draws with top-k, top-p and min-p.
void launch_filtered_draw(const FilterArguments& arguments, void* workspace, cudaStream_t stream);

// The same by radix selection over whole rows, for rows r with flags[r] != 0: slow, in any case.
void launch_radix_draw(const FilterArguments& arguments, const std::int32_t* flags,
                       cudaStream_t stream);

}  // namespace antisd::inline ops
