// A frozen matrix in 8 or 4 bits (formats: kernels/quantized_formulas.cuh), and its conversions. A
// product turns it into the compute precision for as long as it runs.
//
//   QuantizedWeight w = empty_quantized(QuantizedKind::kNf4, {4096, 2560}, at::kCUDA);
//   quantize_into(values, w);                                 // [4096, 2560], any precision
//   const at::Tensor dense = dequantize(w, at::kBFloat16);    // [4096, 2560]
//
// Rows of codes are padded with zeros to multiples of 16 bytes, so that a kernel reads them in wide
// pieces and a part of the rows is a matrix of the same form.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "ops/kernels/quantized_formulas.cuh"

namespace antisd::inline ops {

// What a row of `columns` elements takes.
struct QuantizedRow {
  std::int64_t bytes = 0;   // of codes
  std::int64_t scales = 0;  // fp32
};
QuantizedRow quantized_row(QuantizedKind kind, std::int64_t columns);

struct QuantizedWeight {
  at::Tensor codes;          // [..., rows, bytes]: int8 as at::kChar, nf4 as at::kByte
  at::Tensor scales;         // fp32 [..., rows, scales]
  std::int64_t columns = 0;  // of the matrix, without padding

  bool defined() const { return codes.defined(); }
  QuantizedKind kind() const;
  std::vector<std::int64_t> sizes() const;  // of the matrix
  QuantizedWeight select(std::int64_t index) const {
    return {codes.select(0, index), scales.select(0, index), columns};
  }
};

at::ScalarType code_type(QuantizedKind kind);

// `sizes`: [..., rows, columns].
QuantizedWeight empty_quantized(QuantizedKind kind, const std::vector<std::int64_t>& sizes,
                                at::Device device);

// values: as many elements as the matrix has, on its device. Where they hold NaN or infinity, a
// scale does too.
void quantize_into(const at::Tensor& values, const QuantizedWeight& to);

// A matrix in `dtype`: fp32 on a CPU, also bf16 and fp16 on a GPU.
at::Tensor dequantize(const QuantizedWeight& weight, at::ScalarType dtype);

}  // namespace antisd::inline ops
