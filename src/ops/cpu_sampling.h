// One row of sample() on a CPU.
#pragma once

#include <cstdint>

#include "ops/sampling.h"

namespace antisd::inline ops {

struct SampledToken {
  std::int32_t id;
  float logp, raw_logp;
};

SampledToken cpu_sample_row(const float* logits, std::int64_t vocabulary,
                            const SamplingSettings& settings, double noise);

}  // namespace antisd::inline ops
