#include "ops/device.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <limits>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include "ops/attention_choice.h"

#ifdef __linux__
#include <malloc.h>
#endif

#ifdef ANTISD_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime.h>
#endif

namespace antisd::inline ops {

namespace {

namespace fs = std::filesystem;

// Display controllers of NVIDIA, whether or not there is a driver.
bool has_nvidia_card() {
  std::error_code ignored;
  for (const fs::directory_entry& device :
       fs::directory_iterator("/sys/bus/pci/devices", ignored)) {
    std::string vendor, kind;
    std::ifstream(device.path() / "vendor") >> vendor;
    std::ifstream(device.path() / "class") >> kind;
    if (vendor == "0x10de" && kind.starts_with("0x03")) return true;
  }
  return false;
}

GpuMachine find_machine() {
  GpuMachine machine;
  machine.has_card = has_nvidia_card();
  machine.has_driver = fs::exists("/dev/nvidiactl");
  std::ifstream file("/sys/module/nvidia/version");
  file >> machine.driver_version;
#ifdef ANTISD_CUDA
  machine.built_with_cuda = true;
  machine.needed_cuda = CUDART_VERSION;
  if (cudaDriverGetVersion(&machine.driver_cuda) != cudaSuccess) machine.driver_cuda = 0;
#endif
  return machine;
}

#ifdef ANTISD_CUDA
void find_gpus(const GpuMachine& machine, TensorLibraryInfo& info) {
  int count = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess) {
    if (status != cudaErrorNoDevice && machine.has_driver)
      info.gpu_problems.push_back({std::string("the driver says: ") + cudaGetErrorString(status),
                                   "`nvidia-smi` should list the cards"});
    return;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp card{};
    if (cudaGetDeviceProperties(&card, i) != cudaSuccess) continue;
    const auto problem =
        card_problem({card.name, card.major, card.minor}, ANTISD_CUDA_ARCHITECTURES);
    if (problem) {
      info.gpu_problems.push_back(*problem);
      continue;
    }
    info.gpus.push_back({fmt::format("cuda:{}", i),
                         fmt::format("{}, {:.0f} GiB, compute {}.{}, {} multiprocessors", card.name,
                                     static_cast<double>(card.totalGlobalMem) / (1 << 30),
                                     card.major, card.minor, card.multiProcessorCount),
                         attention_text(attention_card(i))});
  }
}
#endif

}  // namespace

TensorLibraryInfo describe_tensor_library() {
  TensorLibraryInfo info;
  info.torch_version = TORCH_VERSION;
  info.threads = at::get_num_threads();
  const GpuMachine machine = find_machine();
  info.built_with_cuda = machine.built_with_cuda;
  if (const std::optional<GpuProblem> problem = machine_problem(machine)) {
    info.gpu_problems.push_back(*problem);
    return info;
  }
#ifdef ANTISD_CUDA
  find_gpus(machine, info);
#endif
  return info;
}

namespace {

// The kernel's estimate of memory available without swapping, limited by a cgroup.
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

#ifdef ANTISD_CUDA
// What the driver has left and what the tensor library keeps of freed tensors, within the limit
// that the library may have been given.
std::int64_t available_on_gpu(c10::DeviceIndex device) {
  const c10::cuda::CUDAGuard guard(device);
  std::size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return 0;
  auto available = static_cast<std::int64_t>(free);
  auto* allocator = c10::cuda::CUDACachingAllocator::get();
  if (!allocator->initialized()) return available;
  const auto stats = allocator->getDeviceStats(device);
  const std::int64_t allocated = stats.allocated_bytes[0].current;
  available += stats.reserved_bytes[0].current - allocated;
  const double limit = allocator->getMemoryFraction(device) * static_cast<double>(total);
  return std::max<std::int64_t>(0,
                                std::min(available, static_cast<std::int64_t>(limit) - allocated));
}
#endif

}  // namespace

std::optional<double> peak_flops(std::string_view gpu_name) {
  struct Peak {
    std::string_view part;  // of the name; the first match counts
    double teraflops;
  };
  constexpr Peak kPeaks[] = {{"H100 PCIe", 756}, {"H100 NVL", 835}, {"H100", 989}, {"H200", 989},
                             {"H800", 989},      {"H20", 148},      {"A100", 312}, {"A800", 312},
                             {"B200", 2250},     {"L40S", 362},     {"L4", 121}};
  for (const Peak& peak : kPeaks) {
    const std::size_t at = gpu_name.find(peak.part);
    if (at == std::string_view::npos) continue;
    // "L4" must not match "L40", nor "H20" "H200".
    const std::size_t end = at + peak.part.size();
    if (end < gpu_name.size() && std::isalnum(static_cast<unsigned char>(gpu_name[end]))) continue;
    return peak.teraflops * 1e12;
  }
  return std::nullopt;
}

std::optional<double> peak_flops([[maybe_unused]] c10::Device device) {
#ifdef ANTISD_CUDA
  cudaDeviceProp properties{};
  const int index = device.has_index() ? device.index() : 0;
  if (device.is_cuda() && cudaGetDeviceProperties(&properties, index) == cudaSuccess)
    return peak_flops(std::string_view(properties.name));
#endif
  return std::nullopt;
}

std::int64_t available_memory(c10::Device device) {
#ifdef ANTISD_CUDA
  if (device.is_cuda()) return available_on_gpu(device.has_index() ? device.index() : 0);
#endif
  return device.is_cpu() ? available_on_host() : 0;
}

void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 26);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

}  // namespace antisd::inline ops
