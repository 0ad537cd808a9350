// Tensors of safetensors files as torch's, and back.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

#include "io/safetensors.h"

namespace antisd::inline model {

// Nothing for a type that weights cannot have.
std::optional<at::ScalarType> scalar_type(TensorType type);
TensorType tensor_type(at::ScalarType type);

// A tensor over the mapped bytes, or over a copy if they are unaligned.
at::Tensor tensor_of(const SafetensorsTensor& source);

}  // namespace antisd::inline model
