// Helpers for the CUDA half of the ops: element types, the current stream, the kind of GPU.
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

// The generation of the GPU, e.g. 9 for Hopper.
inline int compute_capability_major(const at::Tensor& tensor) {
  int major = 0;
  const cudaError_t status =
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, tensor.device().index());
  ANTISD_CHECK(status == cudaSuccess);
  return major;
}

}  // namespace antisd::inline ops

#endif
