#include "ops/device.h"

#ifdef __linux__
#include <malloc.h>
#endif

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/headeronly/version.h>

#ifdef ANTISD_CUDA
#include <cuda_runtime.h>
#endif

namespace antisd {

TensorLibraryInfo describe_tensor_library() {
  TensorLibraryInfo info;
  info.torch_version = TORCH_VERSION;
  info.threads = at::get_num_threads();
#ifdef ANTISD_CUDA
  info.built_with_cuda = true;
  int count = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess) {
    info.gpu_problem = cudaGetErrorString(status);
    return info;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) continue;
    info.gpus.push_back(
        {fmt::format("cuda:{}", i),
         fmt::format("{}, {:.0f} GiB, compute {}.{}, {} multiprocessors", properties.name,
                     static_cast<double>(properties.totalGlobalMem) / (1 << 30), properties.major,
                     properties.minor, properties.multiProcessorCount)});
  }
#endif
  return info;
}

void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 26);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

}  // namespace antisd
