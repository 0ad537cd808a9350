// NaN and infinity in weights, or in what weights compute.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/error.h"

namespace antisd::inline model {

// Weights that are not finite, or that do not compute finite numbers. A run that meets one ends;
// nothing is saved after it.
class NotFinite : public RunError {
 public:
  using RunError::RunError;
};

// A part at a time, so that it needs little memory beside the tensor. Waits for the device.
bool all_finite(const at::Tensor& tensor);

}  // namespace antisd::inline model
