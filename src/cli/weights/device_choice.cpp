#include "cli/weights/device_choice.h"

#include <fmt/format.h>

#include "core/error.h"
#include "ops/device.h"

namespace antisd::inline cli {

at::Device choose_device(const std::string& name) {
  const TensorLibraryInfo library = describe_tensor_library();
  if (name == "cpu" || (name == "auto" && library.gpus.empty())) return at::kCPU;
  const std::string wanted = name == "auto" || name == "cuda" ? "cuda:0" : name;
  for (const DeviceInfo& gpu : library.gpus) {
    if (gpu.name == wanted) return at::Device(wanted);
  }
  throw InputError(
      fmt::format("there is no device '{}'", name),
      {.where = "--device",
       .remedy = library.built_with_cuda
                     ? "use cpu, cuda or cuda:N; `antisd doctor` lists the devices"
                     : "this binary has no CUDA; build with `make CUDA=1` or use cpu"});
}

}  // namespace antisd::inline cli
