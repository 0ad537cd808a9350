// NaN or infinity where a number is needed.
#pragma once

#include "core/error.h"

namespace antisd::inline core {

// Weights are not finite or give results that are not. It ends the run; nothing is saved after it.
class NotFinite : public RunError {
 public:
  using RunError::RunError;
};

}  // namespace antisd::inline core
