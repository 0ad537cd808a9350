// The element types of the safetensors format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace antisd::inline io {

// In the order of the format's reference implementation, which sorts tensors by it.
enum class TensorType : std::uint8_t {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
};

std::string_view name_of(TensorType type);  // "BF16"
std::optional<TensorType> tensor_type_of(std::string_view name);
int bits_of(TensorType type);  // per element; three types are smaller than a byte

struct TensorSpec {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<std::int64_t> shape;  // empty for a scalar

  // Nothing if it overflows 63 bits, a dimension is negative or the last byte is partial.
  std::optional<std::int64_t> byte_count() const;
};

}  // namespace antisd::inline io
