// Logits of the whole vocabulary, in fp32 whatever the weights' precision: bf16 logits of size 16
// to 32 are 0.125 apart.
#pragma once

#include <ATen/core/Tensor.h>

namespace antisd::inline ops {

// hidden: [n, width]; head: [rows, width]. Returns fp32 [n, rows]. No gradients.
at::Tensor head_logits(const at::Tensor& hidden, const at::Tensor& head);

}  // namespace antisd::inline ops
