// NaN and infinity in weights.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/not_finite.h"

namespace antisd::inline model {

// Checks in parts, so that it needs little extra memory. Synchronises with the device.
bool all_finite(const at::Tensor& tensor);

}  // namespace antisd::inline model
