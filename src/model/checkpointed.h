// Gradient checkpointing: a function's inside is not kept for the backward pass but computed again
// there.
#pragma once

#include <functional>

#include <ATen/core/Tensor.h>

#include "model/pass.h"

namespace antisd::inline model {

// function(x, kInference), differentiable in x and in every leaf that the function reads. The
// backward pass calls function(x, kRecomputed): then nobody reads the function's value, only the
// graph behind it. What the function captures must live until the backward pass and must not change
// before it.
at::Tensor checkpointed(const std::function<at::Tensor(const at::Tensor&, Pass)>& function,
                        const at::Tensor& x);

}  // namespace antisd::inline model
