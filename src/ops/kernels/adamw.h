#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "ops/kernels/element_type.h"
#include "ops/kernels/formulas.cuh"

namespace antisd::inline ops {

// One AdamW step over `count` elements in one pass. master, first, second: fp32; the rounded master
// is written to `weight` of `weight_type`. If that is fp32, weight and master are the same memory.
// Any count; fast if it is a multiple of 8 and all pointers are multiples of 16 bytes.
void launch_adamw(ElementType weight_type, void* weight, float* master, ElementType gradient_type,
                  const void* gradient, float* first, float* second, std::int64_t count,
                  const AdamWFactors& factors, cudaStream_t stream);

}  // namespace antisd::inline ops
