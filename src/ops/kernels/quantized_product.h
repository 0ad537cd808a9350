#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "ops/kernels/element_type.h"
#include "ops/kernels/quantized_formulas.cuh"

namespace antisd::inline ops {

inline constexpr std::int64_t kFusedRows = 64;     // at most
inline constexpr std::int64_t kFusedColumns = 64;  // a multiple of it

// What a step of decoding does: few rows, so that reading the weights is most of the time.
struct QuantizedProduct {
  QuantizedKind kind;
  ElementType type;  // 16 bits
  const void* x;     // [rows, columns]
  std::int64_t rows, columns, outputs;
  const void* codes;  // [outputs, row_bytes]
  const float* scales;
  std::int64_t row_bytes;
  const float* residual;  // [rows, outputs], or null
  void* y;                // [rows, outputs] of `type`; with a residual fp32, and may be it
};

// y = x weight^T (+ residual), from the codes, with weights rounded to `type` as launch_dequantize
// does. x and codes at multiples of 16 bytes.
void launch_quantized_product(const QuantizedProduct& product, cudaStream_t stream);

}  // namespace antisd::inline ops
