#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "ops/kernels/element_type.h"
#include "ops/kernels/quantized_formulas.cuh"

namespace antisd::inline ops {

// values [rows, columns] of `type` -> codes [rows, row_bytes] and their scales
// (ops/quantized_weight.h). Padding gets the code of 0.
void launch_quantize(QuantizedKind kind, ElementType type, const void* values, std::int64_t rows,
                     std::int64_t columns, std::int64_t row_bytes, void* codes, float* scales,
                     cudaStream_t stream);

// The reverse. Any number of columns; fast if it is a multiple of 8.
void launch_dequantize(QuantizedKind kind, const void* codes, const float* scales,
                       std::int64_t rows, std::int64_t columns, std::int64_t row_bytes,
                       ElementType type, void* values, cudaStream_t stream);

}  // namespace antisd::inline ops
