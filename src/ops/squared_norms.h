// Sums of squares of many tensors, for the norm of the gradient.
#pragma once

#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

namespace antisd::inline ops {

// One per tensor (contiguous, fp32 or bf16, on a GPU also fp16; all on one device), on the host:
// synchronises with the device once. The same bits for any number of threads. Not finite if a value
// is not.
std::vector<double> fetch_squared_norms(std::span<const at::Tensor> tensors);

}  // namespace antisd::inline ops
