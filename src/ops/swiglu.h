// silu(gate) * up, the gated unit of all models here, with its gradient.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace antisd::inline ops {

// gate_up: [rows, 2 * width], gate first. Returns [rows, width]. The backward pass recomputes silu.
at::Tensor swiglu(const at::Tensor& gate_up);

// The CPU version on raw numbers, for ops that contain it.
void cpu_swiglu(const float* gate, const float* up, std::int64_t count, float* y);

}  // namespace antisd::inline ops
