#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace antisd::inline ops {

// The settings to sample a row of logits with; see ops/sampling.h for the rules.
struct SamplingRule {
  double temperature;  // 0: greedy
  double top_p, min_p;
  std::int64_t top_k;
};

// Bytes of workspace for `rows` rows of `vocabulary` tokens; it starts at a multiple of 16.
std::int64_t sampling_workspace(std::int64_t rows, std::int64_t vocabulary,
                                const SamplingRule& rule);

// logits: fp32 rows `stride` floats apart; noise: fp64 [rows] in [0, 1).
void launch_sample(const float* logits, std::int64_t rows, std::int64_t stride,
                   std::int64_t vocabulary, const SamplingRule& rule, const double* noise,
                   std::int32_t* ids, float* logp, float* raw_logp, void* workspace,
                   cudaStream_t stream);

}  // namespace antisd::inline ops
