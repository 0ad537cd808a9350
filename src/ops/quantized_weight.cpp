#include "ops/quantized_weight.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "core/check.h"
#include "ops/backend.h"
#include "ops/simd.h"

#ifdef ANTISD_CUDA
#include "ops/kernels/quantized_weight.h"
#endif

namespace antisd::inline ops {
namespace {

constexpr std::int64_t kQuantizedRowsPerTask = 16;

float largest_magnitude(const float* values, std::int64_t count) {
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i)
    largest = larger_magnitude(largest, values[i]);
  return largest;
}

void quantize_int8_row(const float* values, std::int64_t columns, const QuantizedRow& row,
                       std::int8_t* codes, float* scale) {
  *scale = int8_scale(largest_magnitude(values, columns));
  for (std::int64_t i = 0; i < row.bytes; ++i)
    codes[i] = static_cast<std::int8_t>(i < columns ? int8_code(values[i], *scale) : 0);
}

void quantize_nf4_row(const float* values, std::int64_t columns, const QuantizedRow& row,
                      std::uint8_t* codes, float* scales) {
  for (std::int64_t block = 0; block < row.scales; ++block) {
    const std::int64_t first = block * kNf4Block,
                       count = std::min<std::int64_t>(kNf4Block, columns - first);
    const float largest = scales[block] = largest_magnitude(values + first, count);
    const auto code = [&](std::int64_t i) {
      return i < count ? nf4_code(values[first + i], largest) : kNf4Zero;
    };
    for (std::int64_t i = 0; i < kNf4Block; i += 2)
      codes[(first + i) / 2] = static_cast<std::uint8_t>(code(i) | code(i + 1) << 4);
  }
}

ANTISD_SIMD_CLONES void dequantize_int8_row(const std::int8_t* codes, float scale,
                                            std::int64_t columns, float* values) {
#pragma omp simd
  for (std::int64_t i = 0; i < columns; ++i)
    values[i] = static_cast<float>(codes[i]) * scale;
}

void dequantize_nf4_row(const std::uint8_t* codes, const float* scales, std::int64_t columns,
                        float* values) {
  float levels[kNf4Levels];
  for (int i = 0; i < kNf4Levels; ++i)
    levels[i] = nf4_level(i);
  for (std::int64_t first = 0; first < columns; first += kNf4Block) {
    const float largest = scales[first / kNf4Block];
    const std::int64_t end = std::min<std::int64_t>(first + kNf4Block, columns);
    for (std::int64_t i = first; i < end; ++i)
      values[i] = nf4_value(levels[codes[i / 2] >> (i % 2 * 4) & 15], largest);
  }
}

template <typename Body>
void for_each_row(std::int64_t rows, const Body& body) {
  at::parallel_for(0, rows, kQuantizedRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      body(row);
  });
}

std::int64_t row_count(const QuantizedWeight& weight) {
  return weight.codes.numel() / weight.codes.size(-1);
}

void check_weight(const QuantizedWeight& weight) {
  ANTISD_CHECK(weight.codes.is_contiguous() && weight.scales.is_contiguous());
  const QuantizedRow row = quantized_row(weight.kind(), weight.columns);
  ANTISD_CHECK_EQ(weight.codes.size(-1), row.bytes);
  ANTISD_CHECK_EQ(weight.scales.numel(), row_count(weight) * row.scales);
}

}  // namespace

QuantizedRow quantized_row(QuantizedKind kind, std::int64_t columns) {
  constexpr std::int64_t kWide = 16;  // bytes
  if (kind == QuantizedKind::kInt8) return {(columns + kWide - 1) / kWide * kWide, 1};
  const std::int64_t blocks = (columns + kNf4Block - 1) / kNf4Block;
  return {blocks * kNf4Block / 2, blocks};
}

at::ScalarType code_type(QuantizedKind kind) {
  return kind == QuantizedKind::kInt8 ? at::kChar : at::kByte;
}

QuantizedKind QuantizedWeight::kind() const {
  if (codes.scalar_type() == at::kChar) return QuantizedKind::kInt8;
  ANTISD_CHECK(codes.scalar_type() == at::kByte);
  return QuantizedKind::kNf4;
}

std::vector<std::int64_t> QuantizedWeight::sizes() const {
  std::vector<std::int64_t> sizes = codes.sizes().vec();
  sizes.back() = columns;
  return sizes;
}

QuantizedWeight empty_quantized(QuantizedKind kind, const std::vector<std::int64_t>& sizes,
                                at::Device device) {
  const QuantizedRow row = quantized_row(kind, sizes.back());
  std::vector<std::int64_t> codes = sizes, scales = sizes;
  codes.back() = row.bytes;
  scales.back() = row.scales;
  const auto options = at::TensorOptions().device(device);
  return {at::empty(codes, options.dtype(code_type(kind))),
          at::empty(scales, options.dtype(at::kFloat)), sizes.back()};
}

void quantize_into(const at::Tensor& values, const QuantizedWeight& to) {
  check_weight(to);
  const std::int64_t rows = row_count(to), columns = to.columns;
  ANTISD_CHECK_EQ(values.numel(), rows * columns);
  ANTISD_CHECK(values.device() == to.codes.device());
  const QuantizedRow row = quantized_row(to.kind(), columns);
#ifdef ANTISD_CUDA
  if (values.is_cuda()) {
    const at::Tensor dense = values.detach().contiguous();
    launch_quantize(to.kind(), element_type(dense), dense.const_data_ptr(), rows, columns,
                    row.bytes, to.codes.mutable_data_ptr(), to.scales.mutable_data_ptr<float>(),
                    current_stream(dense));
    return;
  }
#endif
  const at::Tensor dense = values.detach().to(at::kFloat).contiguous();
  const float* from = dense.const_data_ptr<float>();
  float* scales = to.scales.mutable_data_ptr<float>();
  for_each_row(rows, [&](std::int64_t r) {
    if (to.kind() == QuantizedKind::kInt8) {
      quantize_int8_row(from + r * columns, columns, row,
                        to.codes.mutable_data_ptr<std::int8_t>() + r * row.bytes, scales + r);
    } else {
      quantize_nf4_row(from + r * columns, columns, row,
                       to.codes.mutable_data_ptr<std::uint8_t>() + r * row.bytes,
                       scales + r * row.scales);
    }
  });
}

at::Tensor dequantize(const QuantizedWeight& weight, at::ScalarType dtype) {
  check_weight(weight);
  const std::int64_t rows = row_count(weight), columns = weight.columns;
  const QuantizedRow row = quantized_row(weight.kind(), columns);
  at::Tensor values = at::empty(weight.sizes(), weight.scales.options().dtype(dtype));
#ifdef ANTISD_CUDA
  if (values.is_cuda()) {
    launch_dequantize(weight.kind(), weight.codes.const_data_ptr(),
                      weight.scales.const_data_ptr<float>(), rows, columns, row.bytes,
                      element_type(values), values.mutable_data_ptr(), current_stream(values));
    return values;
  }
#endif
  ANTISD_CHECK(dtype == at::kFloat);
  const float* scales = weight.scales.const_data_ptr<float>();
  float* to = values.mutable_data_ptr<float>();
  for_each_row(rows, [&](std::int64_t r) {
    if (weight.kind() == QuantizedKind::kInt8) {
      dequantize_int8_row(weight.codes.const_data_ptr<std::int8_t>() + r * row.bytes, scales[r],
                          columns, to + r * columns);
    } else {
      dequantize_nf4_row(weight.codes.const_data_ptr<std::uint8_t>() + r * row.bytes,
                         scales + r * row.scales, columns, to + r * columns);
    }
  });
  return values;
}

}  // namespace antisd::inline ops
