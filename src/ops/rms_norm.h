// y = x / sqrt(mean(x^2) + eps) * weight over the last dimension, with its gradient.
#pragma once

#include <ATen/core/Tensor.h>

namespace antisd::inline ops {

// x: [..., width], weight: [width]. fp32, bf16 or fp16; statistics are fp32. The result has the
// weight's precision, also if x is fp32 and the weight is not.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

// The parts, for ops that contain a norm. x may be a strided view [rows, width] whose last
// dimension is dense. Writes y (same sizes, may be strided) and returns inverse_rms, fp32 [rows].
at::Tensor rms_norm_forward(const at::Tensor& x, const at::Tensor& weight, double eps,
                            const at::Tensor& y);
// Writes dx and returns dweight, fp32 [width]. If defined, `behind` is added to dx, and the sum is
// also written to `rounded` in its precision; both are contiguous and of dx's sizes.
at::Tensor rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& inverse_rms, const at::Tensor& dx,
                             const at::Tensor& behind = {}, const at::Tensor& rounded = {});
// Whether the parts support this x with this weight: of one precision, or on a GPU an fp32 stream
// of a common width.
bool takes_stream(const at::Tensor& x, const at::Tensor& weight);

}  // namespace antisd::inline ops
