#ifdef ANTISD_TORCH

#include "bench/memory_cap.h"

#include <ATen/ATen.h>

#include "core/error.h"

#ifdef ANTISD_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime.h>
#endif

namespace antisd::bench {

void add_memory_option(CLI::App& app, double& gib) {
  app.add_option("--memory-gib", gib,
                 "give tensors at most so much of the GPU, as a smaller card would; 0: all")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
}

void cap_memory([[maybe_unused]] at::Device device, double gib) {
  if (gib == 0) return;
#ifdef ANTISD_CUDA
  if (device.is_cuda()) {
    const c10::DeviceIndex index = device.has_index() ? device.index() : 0;
    c10::cuda::set_device(index);
    std::size_t free = 0, total = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) throw RunError("the GPU does not answer");
    const double fraction = gib * (1 << 30) / static_cast<double>(total);
    if (fraction > 1) throw InputError("the GPU has less memory", {.where = "--memory-gib"});
    at::zeros({1}, device);  // the allocator begins its work
    c10::cuda::CUDACachingAllocator::setMemoryFraction(fraction, index);
    return;
  }
#endif
  throw InputError("only a GPU's memory can be capped",
                   {.where = "--memory-gib", .remedy = "use it with --device cuda"});
}

}  // namespace antisd::bench

#endif
