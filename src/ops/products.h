// The three products of a linear map, forward and backward, without gradients of their own. fp32 on
// a CPU with widths of whole vectors takes tile products, which are faster than the BLAS for models
// that are trained on a CPU; everything else goes to the tensor library. On a CPU the sums have one
// order, whatever the number of threads.
#pragma once

#include <ATen/core/Tensor.h>

namespace antisd::inline ops {

// Whether x [tokens, in] and weight [out, in] are taken by tile products.
bool suits_tile_products(const at::Tensor& x, const at::Tensor& weight);

at::Tensor product_nt(const at::Tensor& x, const at::Tensor& weight,
                      const at::Tensor& residual);                      // x weight^T (+ residual)
at::Tensor product_nn(const at::Tensor& dy, const at::Tensor& weight);  // dy weight
at::Tensor product_tn(const at::Tensor& dy, const at::Tensor& x);       // dy^T x

// x weight^T + bias with gradients; bias may be undefined.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace antisd::inline ops
