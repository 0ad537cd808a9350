#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "ops/kernels/element_type.h"

namespace antisd::inline ops {

// Norms an fp32 stream into 16 bits (`type`): y = x * rsqrt(mean(x^2) + eps) * weight. x: fp32
// [rows, width]; weight, y: of `type`; all contiguous and aligned to 16 bytes; inverse_rms: fp32
// [rows] or null. width: a multiple of 8 up to kWidestStream.
inline constexpr std::int64_t kWidestStream = 8192;
void launch_wide_rms_norm(ElementType type, const float* x, const void* weight, double eps,
                          std::int64_t rows, std::int64_t width, void* y, float* inverse_rms,
                          cudaStream_t stream);

// dx: fp32 [rows, width], with `behind` (likewise, or null) added; rounded: the same in `type`, or
// null; dweight: fp32 [width], overwritten. workspace: fp32 [kWideNormBlocks, width]. Sums have a
// fixed order.
inline constexpr int kWideNormBlocks = 264;
void launch_wide_rms_norm_backward(ElementType type, const void* dy, const float* x,
                                   const void* weight, const float* inverse_rms,
                                   const float* behind, std::int64_t rows, std::int64_t width,
                                   float* dx, void* rounded, float* dweight, float* workspace,
                                   cudaStream_t stream);

}  // namespace antisd::inline ops
