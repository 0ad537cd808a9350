// One step of AdamW on one tensor, in one pass over its memory.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "ops/kernels/formulas.cuh"

namespace antisd::inline ops {

// Elements are updated in blocks of this many, counted from a tensor's first: the last bit of an
// element may depend on whether it is in the remainder of a vector loop. So a tensor that is cut
// between such blocks is updated to the same bits.
inline constexpr std::int64_t kUpdateBlock = 4096;

struct AdamWSettings {
  double lr = 1e-6;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;  // decoupled: multiplied by lr
};

// `step` counts from 1; gradients are first multiplied by `gradient_scale`.
AdamWFactors adamw_factors(const AdamWSettings& settings, std::int64_t step, double gradient_scale);

// All contiguous, of one size, on one device.
struct AdamWTensors {
  at::Tensor weight;         // fp32, or 16 bits (on a CPU: bf16) beside its master
  at::Tensor master;         // fp32; undefined if the weight is its own master
  at::Tensor gradient;       // fp32 or the weight's type
  at::Tensor first, second;  // fp32 moments
};

// The result does not depend on the number of threads, nor on cuts between blocks.
void adamw_step(const AdamWTensors& tensors, const AdamWFactors& factors);

}  // namespace antisd::inline ops
