#define USE_C10D_NCCL
#include <cstdlib>

#include <cuda_runtime.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "core/error.h"
#include "dist/group/nccl.h"

namespace antisd::inline dist {

static_assert(NCCL_VERSION_CODE == NCCL_VERSION(2, 28, 9),
              "classes of libtorch contain NCCL's: nccl.h has to be that of setup/wheels-cuda.txt");

std::string own_gpu() {
  int device = 0;
  cudaDeviceProp properties{};
  cudaError_t status = cudaGetDevice(&device);
  if (status == cudaSuccess) status = cudaGetDeviceProperties(&properties, device);
  if (status != cudaSuccess)
    throw RunError(fmt::format("no GPU for this rank: {}", cudaGetErrorString(status)));
  return {properties.uuid.bytes, sizeof(properties.uuid.bytes)};
}

c10::intrusive_ptr<c10d::Backend> join_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                            int size) {
  // Liveness decides who is dead. c10d's own watchdog would abort this process instead.
  setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", /*overwrite=*/0);
  setenv("TORCH_NCCL_ENABLE_MONITORING", "0", /*overwrite=*/0);
  setenv("TORCH_NCCL_DUMP_ON_TIMEOUT", "0", /*overwrite=*/0);
  const auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = std::chrono::hours(24 * 100);
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, options);
}

}  // namespace antisd::inline dist
#undef USE_C10D_NCCL
