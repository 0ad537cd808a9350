// NaN and infinity in weights or in results.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/error.h"

namespace antisd::inline model {

// Weights are not finite or give results that are not. It ends the run; nothing is saved after it.
class NotFinite : public RunError {
 public:
  using RunError::RunError;
};

// Checks in parts, so that it needs little extra memory. Synchronises with the device.
bool all_finite(const at::Tensor& tensor);

}  // namespace antisd::inline model
