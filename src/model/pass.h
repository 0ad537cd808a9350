// What a forward pass is for. The caller says so; whether this thread records gradients decides
// nothing.
#pragma once

#include "ops/gradients.h"

namespace antisd::inline model {

enum class Pass {
  kInference,   // values alone
  kTraining,    // and gradients, from what the pass keeps
  kRecomputed,  // and gradients, each layer computed again in the backward pass
};

inline Gradients gradients_of(Pass pass) {
  return pass == Pass::kInference ? Gradients::kNone : Gradients::kRecorded;
}

inline Pass training_pass(bool recomputed) {
  return recomputed ? Pass::kRecomputed : Pass::kTraining;
}

}  // namespace antisd::inline model
