// A linear map per group of rows, with gradients: the matrix products of a layer of experts.
//
//   at::Tensor x, w, ends;  // [rows, in], [experts, out, in], int32 [experts]
//   const at::Tensor y = grouped_linear(x, w, ends);  // [rows, out]
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace antisd::inline ops {

// Which GPU code computes it. A CPU has its own way.
enum class GroupedCode {
  kChosen,  // by choose_grouped_code
  kTorch,   // torch's _grouped_mm
  kOwn,     // kernels/grouped_product: bf16 and fp16, can be captured on every GPU
};

// kTorch or kOwn for a GPU of compute capability `major`.x. torch has one launch for all experts,
// with instructions of Hopper and datacentre Blackwell, for bf16 rows of whole 16 bytes on 9.x and
// 10.x alone. Everywhere else it reads `ends` back and loops over the experts, which cannot be
// captured.
GroupedCode choose_grouped_code(int major, at::ScalarType dtype, std::int64_t in, std::int64_t out);

// y[rows of e] = x[rows of e] w[e]^T; x [rows, in], w [experts, out, in], both dense; ends: int32
// [experts], one past each expert's last row, the last one is `rows`. A weight that needs no
// gradient gets none computed, and x is not kept for it. A row's result does not depend on other
// rows on a CPU, as linear()'s does not, nor with kOwn.
at::Tensor grouped_linear(const at::Tensor& x, const at::Tensor& w, const at::Tensor& ends,
                          GroupedCode code = GroupedCode::kChosen);

// On a GPU: the gradient of x, dy[rows of e] w[e], without autograd.
at::Tensor grouped_input_gradient(const at::Tensor& dy, const at::Tensor& w,
                                  const at::Tensor& ends);

}  // namespace antisd::inline ops
