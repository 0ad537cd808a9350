// The gated unit of a layer on the CPU without gradients: down(silu(gate x) * up x), a few tokens
// at a time from end to end, so that the wide middle never leaves the cache. Tokens lie side by
// side in vector lanes; the weights are read where they are.
#pragma once

#include <ATen/core/Tensor.h>

namespace antisd {

// fp32, contiguous: x [tokens, hidden]; gate_up [2 * width, hidden], gate first; down [hidden,
// width]; residual like x, added, or undefined.
at::Tensor cpu_gated_unit(const at::Tensor& x, const at::Tensor& gate_up, const at::Tensor& down,
                          const at::Tensor& residual);

// y = x weight^T, plus residual, in the same way.
at::Tensor cpu_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& residual);

}  // namespace antisd
