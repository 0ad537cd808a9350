// The devices that this build can use, for `doctor` and --device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/Device.h>

#include "ops/gpu_problem.h"

namespace antisd::inline ops {

struct DeviceInfo {
  std::string name;         // "cuda:0"
  std::string description;  // "NVIDIA H200, 139 GiB, compute 9.0"
  std::string attention;    // which code computes it (ops/attention_choice.h)
};

struct TensorLibraryInfo {
  std::string torch_version;             // of the loaded library, not of the headers
  bool built_with_cuda = false;          // our kernels are in this binary
  int threads = 1;                       // of the tensor library
  std::vector<DeviceInfo> gpus;          // that can be used
  std::vector<GpuProblem> gpu_problems;  // why others cannot
};

TensorLibraryInfo describe_tensor_library();

// Dense bf16 multiply-adds per second x 2, from the data sheet of the GPU of that name; nothing for
// an unknown GPU and for a CPU.
std::optional<double> peak_flops(std::string_view gpu_name);
std::optional<double> peak_flops(c10::Device device);

// Bytes that can be allocated on the device now.
std::int64_t available_memory(c10::Device device);

// Call it when the program starts: freed tensor memory then stays with the process, instead of
// being returned to the system and cleared again for every step.
void keep_freed_memory();

}  // namespace antisd::inline ops
