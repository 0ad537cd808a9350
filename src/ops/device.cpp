#include "ops/device.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/headeronly/version.h>

#ifdef __linux__
#include <malloc.h>
#endif

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

namespace {

// The kernel's estimate of what can be had without swapping, bounded by a cgroup's limit.
std::int64_t available_on_host() {
  std::int64_t bytes = std::numeric_limits<std::int64_t>::max();
  std::ifstream meminfo("/proc/meminfo");
  for (std::string line; std::getline(meminfo, line);) {
    if (line.starts_with("MemAvailable:"))
      bytes = std::strtoll(line.c_str() + 13, nullptr, 10) * 1024;
  }
  std::int64_t limit = 0, used = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit &&
      std::ifstream("/sys/fs/cgroup/memory.current") >> used)
    bytes = std::min(bytes, std::max<std::int64_t>(0, limit - used));
  return bytes == std::numeric_limits<std::int64_t>::max() ? std::int64_t{1} << 30 : bytes;
}

}  // namespace

std::int64_t available_memory(c10::Device device) {
#ifdef ANTISD_CUDA
  if (device.is_cuda()) {
    std::size_t free = 0, total = 0;
    return cudaMemGetInfo(&free, &total) == cudaSuccess ? static_cast<std::int64_t>(free) : 0;
  }
#endif
  return device.is_cpu() ? available_on_host() : 0;
}

void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 26);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

}  // namespace antisd
