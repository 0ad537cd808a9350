// The two operations between layers of a model, each with its gradient: adding a product to the
// residual stream, and the stream's norm. Where the norm's gradient meets the stream's own, one
// kernel adds them and rounds the sum for the preceding products.
//
//   const StreamNorm next = add_and_norm(stream, {x, weight, bias}, norm_weight, eps);
//   stream = next.stream;
//   y = layer(next.normed);
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/quantized_weight.h"

namespace antisd::inline ops {

// x weight^T + bias. x: [tokens, in]; weight: [out, in]; bias may be undefined. A weight that is
// `quantized` is not in `weight` and has no gradient.
struct StreamProduct {
  at::Tensor x, weight, bias;
  QuantizedWeight quantized = {};
};

// stream + the product, rounded once, to the stream's fp32; or, if `left_out`, the stream as it is,
// with the same gradients.
at::Tensor add_product(const at::Tensor& stream, const StreamProduct& product, bool left_out);

struct StreamNorm {
  at::Tensor stream;  // fp32 [tokens, width]
  at::Tensor normed;  // rms_norm of it, in the weight's precision
};

// Without x, the product adds nothing. Both results have gradients.
StreamNorm add_and_norm(const at::Tensor& stream, const StreamProduct& product,
                        const at::Tensor& norm_weight, double eps);

}  // namespace antisd::inline ops
