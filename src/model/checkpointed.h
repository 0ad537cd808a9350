// Gradient checkpointing: a function's inside is not kept for the backward pass but computed again
// there.
#pragma once

#include <functional>

#include <ATen/core/Tensor.h>

namespace antisd {

// function(x), differentiable in x and in every leaf that the function reads. What the function
// captures must live until the backward pass and must not change before it.
at::Tensor checkpointed(const std::function<at::Tensor(const at::Tensor&)>& function,
                        const at::Tensor& x);

// Whether this thread is computing a function anew for its gradients: then nobody reads the
// function's value, only the graph behind it.
bool is_recomputing();

}  // namespace antisd
