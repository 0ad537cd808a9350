#include "io/tensor_type.h"

#include <algorithm>
#include <array>

namespace antisd::inline io {
namespace {

struct TypeRow {
  std::string_view name;
  int bits;
};

constexpr std::array kTypes = std::to_array<TypeRow>({
    {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
    {"I64", 64},        {"U64", 64},
});
static_assert(kTypes.size() == static_cast<std::size_t>(TensorType::kU64) + 1);

}  // namespace

std::string_view name_of(TensorType type) {
  return kTypes[static_cast<std::size_t>(type)].name;
}

std::optional<TensorType> tensor_type_of(std::string_view name) {
  const auto found = std::ranges::find(kTypes, name, &TypeRow::name);
  if (found == kTypes.end()) return std::nullopt;
  return static_cast<TensorType>(found - kTypes.begin());
}

int bits_of(TensorType type) {
  return kTypes[static_cast<std::size_t>(type)].bits;
}

std::optional<std::int64_t> TensorSpec::byte_count() const {
  if (std::ranges::any_of(shape, [](std::int64_t size) { return size < 0; })) return std::nullopt;
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::int64_t bits = bits_of(type);
  // The bits of a tensor of 2^60 bytes and more overflow too; no such file exists.
  for (const std::int64_t size : shape)
    if (__builtin_mul_overflow(bits, size, &bits)) return std::nullopt;
  if (bits % 8 != 0) return std::nullopt;
  return bits / 8;
}

}  // namespace antisd::inline io
