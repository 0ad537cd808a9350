// Helpers for the CUDA half of the ops: element types and the current stream.
#pragma once

#ifdef ANTISD_CUDA

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAStream.h>

#include "core/check.h"
#include "ops/kernels/element_type.h"

namespace antisd::inline ops {

inline ElementType element_type(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kBFloat16) return ElementType::kBFloat16;
  if (tensor.scalar_type() == at::kHalf) return ElementType::kFloat16;
  ANTISD_CHECK(tensor.scalar_type() == at::kFloat);
  return ElementType::kFloat32;
}

inline cudaStream_t current_stream(const at::Tensor& tensor) {
  return c10::cuda::getCurrentCUDAStream(tensor.device().index()).stream();
}

}  // namespace antisd::inline ops

#endif
