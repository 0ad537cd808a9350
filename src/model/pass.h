// The purpose of a forward pass, set by the caller; the thread's grad mode does not matter.
#pragma once

#include "ops/gradients.h"

namespace antisd::inline model {

enum class Pass {
  kInference,   // only values
  kTraining,    // and gradients, from what the pass keeps
  kRecomputed,  // and gradients; the backward pass recomputes layers
};

inline Gradients gradients_of(Pass pass) {
  return pass == Pass::kInference ? Gradients::kNone : Gradients::kRecorded;
}

}  // namespace antisd::inline model
