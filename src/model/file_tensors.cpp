#include "model/file_tensors.h"

#include <cstring>

#include <ATen/ATen.h>

#include "core/check.h"

namespace antisd::inline model {

std::optional<at::ScalarType> scalar_type(TensorType type) {
  if (type == TensorType::kF32) return at::kFloat;
  if (type == TensorType::kF16) return at::kHalf;
  if (type == TensorType::kBF16) return at::kBFloat16;
  return std::nullopt;
}

TensorType tensor_type(at::ScalarType type) {
  if (type == at::kFloat) return TensorType::kF32;
  if (type == at::kHalf) return TensorType::kF16;
  ANTISD_CHECK(type == at::kBFloat16);
  return TensorType::kBF16;
}

at::Tensor tensor_of(const SafetensorsTensor& source) {
  const at::ScalarType type = *scalar_type(source.type);
  const auto options = at::TensorOptions().dtype(type);
  auto* bytes = const_cast<std::byte*>(source.data.data());
  if (reinterpret_cast<std::uintptr_t>(bytes) % c10::elementSize(type) == 0) {
    return at::from_blob(bytes, source.shape, options);
  }
  at::Tensor copy = at::empty(source.shape, options);
  std::memcpy(copy.mutable_data_ptr(), bytes, source.data.size());
  return copy;
}

}  // namespace antisd::inline model
