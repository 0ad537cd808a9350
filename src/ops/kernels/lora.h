// What adapters add to the products of few rows (decoding), in two kernels for all parts.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "ops/kernels/element_type.h"

namespace antisd::inline ops {

inline constexpr std::int64_t kLoraFusedRows = 256, kLoraFusedRank = 128, kLoraFusedParts = 4;

// y[:, first + j] += sum over k of z[:, part rank + k] b[j, k], z = scale x a^T, both products with
// sums in fp32 and one rounding. A row's result does not depend on the other rows.
struct LoraProduct {
  ElementType type;      // of x, a, b and z; 16 bits
  const void* x;         // [rows, columns], rows one after the other, at multiples of 16 bytes
  std::int64_t rows;     // at most kLoraFusedRows
  std::int64_t columns;  // a multiple of 64
  const void* a;         // [parts rank, columns]
  const void* b;         // [rows of all parts, rank]
  std::int64_t rank;     // a multiple of 4, at most kLoraFusedRank
  float scale;
  int parts;                                                      // at most kLoraFusedParts
  std::int64_t first[kLoraFusedParts], outputs[kLoraFusedParts];  // of each part, even numbers
  void* z;         // [rows, parts rank]: the result of the first product
  bool y_is_fp32;  // else of `type`
  void* y;
  std::int64_t y_row;  // elements from row to row, an even number
  float* sums;         // workspace, lora_sums() floats
};

std::int64_t lora_sums(std::int64_t rows, std::int64_t columns, std::int64_t ranks);

void launch_lora(const LoraProduct& product, cudaStream_t stream);

}  // namespace antisd::inline ops
