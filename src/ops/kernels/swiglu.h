#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "ops/kernels/element_type.h"

namespace antisd::inline ops {

// y = silu(gate) * up, with gate and up side by side: gate_up [rows, 2 * width], y [rows, width].
void launch_swiglu(ElementType type, const void* gate_up, std::int64_t rows, std::int64_t width,
                   void* y, cudaStream_t stream);

// dgate_up [rows, 2 * width] from dy [rows, width]; silu is recomputed. dgate_up may be
// gate_up.
void launch_swiglu_backward(ElementType type, const void* dy, const void* gate_up,
                            std::int64_t rows, std::int64_t width, void* dgate_up,
                            cudaStream_t stream);

}  // namespace antisd::inline ops
