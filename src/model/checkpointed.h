// Gradient checkpointing: a function's intermediate values are not kept for the backward pass but
// recomputed in it.
#pragma once

#include <functional>
#include <memory>

#include <ATen/core/Tensor.h>

#include "model/pass.h"

namespace antisd::inline model {

// function(x, kInference), differentiable with respect to x and every leaf that the function reads.
// The backward pass calls function(x, kRecomputed), which needs only the graph, not the value. What
// the function captures must live until the backward pass and must not change before it. What
// `hold` returns is kept from before that call until the function's own backward pass is done.
at::Tensor checkpointed(const std::function<at::Tensor(const at::Tensor&, Pass)>& function,
                        const at::Tensor& x, const std::function<std::shared_ptr<void>()>& hold);

}  // namespace antisd::inline model
