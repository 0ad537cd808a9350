#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "ops/kernels/element_type.h"

namespace antisd::inline ops {

// y = x * rsqrt(mean(x^2) + eps) * weight over the last dimension. x, y: [rows, width] of `type`,
// rows `x_stride` / `y_stride` elements apart; weight: [width] of `type`; inverse_rms: fp32 [rows],
// kept for the backward pass (may be null). y may be x. Any width; fast if it is a multiple of 8 up
// to 16384 and pointers and strides are multiples of 16 bytes.
void launch_rms_norm(ElementType type, const void* x, std::int64_t x_stride, const void* weight,
                     double eps, std::int64_t rows, std::int64_t width, void* y,
                     std::int64_t y_stride, float* inverse_rms, cudaStream_t stream);

// dx: [rows, width] of `type`; dweight: fp32 [width], accumulated (without atomics: partial sums in
// `workspace`, fp32 [kRmsNormBackwardBlocks, width], are reduced in a fixed order, so the result is
// reproducible). dx may be dy or x.
inline constexpr int kRmsNormBackwardBlocks = 264;
void launch_rms_norm_backward(ElementType type, const void* dy, std::int64_t dy_stride,
                              const void* x, std::int64_t x_stride, const void* weight,
                              const float* inverse_rms, std::int64_t rows, std::int64_t width,
                              void* dx, std::int64_t dx_stride, float* dweight, float* workspace,
                              cudaStream_t stream);

}  // namespace antisd::inline ops
