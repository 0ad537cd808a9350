// Sums of squares of many tensors, for the norm of the gradient.
#pragma once

#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

namespace antisd::inline ops {

// The sums of squares of each tensor (contiguous, fp32 or bf16, on a GPU also fp16; all on one
// device), on the host: synchronises with the device once. Added in their order they give the
// tensor's. The same bits for any number of threads. Not finite if a value is not.
//
// On a CPU there is one for every kUpdateBlock elements, so that the squares of a tensor are also
// those of its parts, cut between such blocks, one behind the other. On a GPU there is one in all.
std::vector<std::vector<double>> fetch_partial_squares(std::span<const at::Tensor> tensors);

}  // namespace antisd::inline ops
