// Products with quantised weights, with the gradient of x alone: such weights are frozen.
//
//   const at::Tensor y = quantized_linear(x, w, bias);   // x dequantize(w)^T + bias
//
// A result is that of linear() with the dequantised weight. The backward pass converts the weight
// again; nothing in the compute precision is kept.
#pragma once

#include "ops/quantized_weight.h"

namespace antisd::inline ops {

// x dequantize(weight)^T, without autograd. With a residual, an fp32 stream, the sum of both,
// rounded once. On a GPU up to 64 rows in 16 bits are computed from the codes by one kernel; others
// convert the whole weight first. Both round the weights alike.
at::Tensor quantized_product(const at::Tensor& x, const QuantizedWeight& weight,
                             const at::Tensor& residual);
// In place.
void add_quantized_product_(at::Tensor stream, const at::Tensor& x, const QuantizedWeight& weight);

// The gradient of x, in dy's precision.
at::Tensor quantized_product_gradient(const at::Tensor& dy, const QuantizedWeight& weight);

// x: [tokens, in]; bias may be undefined.
at::Tensor quantized_linear(const at::Tensor& x, const QuantizedWeight& weight,
                            const at::Tensor& bias);

// For experts: y[rows of expert e] = x[rows of expert e] weight[e]^T; ends: int32
// [experts], one past each expert's last row.
at::Tensor quantized_grouped_linear(const at::Tensor& x, const QuantizedWeight& weight,
                                    const at::Tensor& ends);

}  // namespace antisd::inline ops
