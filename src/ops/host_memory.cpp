#include "ops/host_memory.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "core/error.h"

#ifdef ANTISD_CUDA
#include <cerrno>
#include <cstring>

#include <cuda_runtime.h>
#include <sys/mman.h>
#endif

namespace antisd::inline ops {
namespace {

constexpr double kGiB = 1 << 30;

#ifdef ANTISD_CUDA
[[noreturn]] void refuse_pinning(std::size_t bytes, const char* reason, const char* setting) {
  throw RunError(fmt::format("cannot pin {:.2f} GiB of host memory: {}",
                             static_cast<double>(bytes) / kGiB, reason),
                 {.where = setting,
                  .remedy = "allow more (ulimit -l, the container's memory limit), use "
                            "optim.offload = \"none\", or a smaller model"});
}

// Not the tensor library's own pinned memory: that rounds sizes up to powers of two. Pages are
// touched by all threads before they are pinned, since the driver does it with one.
at::Tensor pinned_zeros(std::int64_t elements, const char* setting) {
  const auto bytes = static_cast<std::size_t>(elements) * sizeof(float);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) refuse_pinning(bytes, std::strerror(errno), setting);
  madvise(memory, bytes, MADV_HUGEPAGE);  // fewer pages; where it is not allowed, small ones do
  at::Tensor tensor = at::from_blob(
      memory, {elements}, [bytes](void* m) { munmap(m, bytes); }, at::TensorOptions(at::kFloat));
  tensor.zero_();
  if (const cudaError_t status = cudaHostRegister(memory, bytes, cudaHostRegisterPortable);
      status != cudaSuccess) {
    cudaGetLastError();  // later calls must not find it
    refuse_pinning(bytes, cudaGetErrorString(status), setting);
  }
  // The driver has to forget the pages before the system gets them back.
  return at::from_blob(
      memory, {elements}, [tensor](void* m) { cudaHostUnregister(m); },
      at::TensorOptions(at::kFloat));
}
#endif

}  // namespace

at::Tensor host_zeros(std::int64_t elements, [[maybe_unused]] c10::Device device,
                      [[maybe_unused]] const char* setting) {
#ifdef ANTISD_CUDA
  if (device.is_cuda()) return pinned_zeros(elements, setting);
#endif
  return at::zeros({elements}, at::TensorOptions(at::kFloat));
}

void check_host_memory(double needed, double available, double teacher) {
  if (needed + kHostReserve <= available) return;
  throw InputError(
      fmt::format("{} need {:.2f} GiB of host memory, and {:.2f} GiB are free, of "
                  "which {:.0f} stay for the rest of the program",
                  teacher == 0        ? "masters and moments"
                  : teacher == needed ? "the teacher's weights"
                                      : "masters, moments and the teacher's weights",
                  needed / kGiB, available / kGiB, kHostReserve / kGiB),
      {.where = teacher == needed ? "method.teacher.path" : "optim.offload",
       .remedy = teacher == needed
                     ? "use a smaller teacher, or a host, or a container, with more memory"
                     : "use \"none\" or \"moments\", more ranks, or a host, or a container, with "
                       "more memory"});
}

}  // namespace antisd::inline ops
