// The three products of a linear map, forward and backward, without autograd. fp32 on a CPU with
// widths that are multiples of a vector uses tile products, which are faster than the BLAS for
// models that are trained on a CPU; everything else goes to the tensor library. On a CPU sums have
// one order, for any number of threads.
#pragma once

#include <ATen/core/Tensor.h>

namespace antisd::inline ops {

// Whether tile products support x [tokens, in] and weight [out, in].
bool suits_tile_products(const at::Tensor& x, const at::Tensor& weight);

at::Tensor product_nt(const at::Tensor& x, const at::Tensor& weight,
                      const at::Tensor& residual);                      // x weight^T (+ residual)
at::Tensor product_nn(const at::Tensor& dy, const at::Tensor& weight);  // dy weight
at::Tensor product_tn(const at::Tensor& dy, const at::Tensor& x);       // dy^T x

// x weight^T + bias with gradients; bias may be undefined.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace antisd::inline ops
