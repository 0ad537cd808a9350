#include "cli/weights/device_choice.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/note.h"
#include "ops/device.h"

namespace antisd::inline cli {

std::string device_of_rank(const std::string& requested, int local_rank, int visible) {
  if (requested == "auto" && visible == 0) return "cpu";
  if (requested != "auto" && requested != "cuda") return requested;
  if (visible == 0 || local_rank < visible) return fmt::format("cuda:{}", local_rank);
  throw InputError(
      fmt::format("rank {} of this node has no GPU: it sees {}", local_rank, visible),
      {.where = "--device",
       .remedy =
           "start as many ranks as GPUs (--processes gpus); --device cuda:0 if each rank sees "
           "only its own GPU, or if all shall share one"});
}

at::Device choose_device(const std::string& name, int local_rank) {
  const TensorLibraryInfo library = describe_tensor_library();
  const std::string wanted =
      device_of_rank(name, local_rank, static_cast<int>(library.gpus.size()));
  if (wanted == "cpu") {
    for (const GpuProblem& problem : library.gpu_problems)
      if (name == "auto" && local_rank == 0)
        note(fmt::format("antisd: warning: {}, so the CPU is used; {}", problem.what,
                         problem.remedy));
    return at::kCPU;
  }
  for (const DeviceInfo& gpu : library.gpus) {
    if (gpu.name == wanted) return at::Device(wanted);
  }
  if (!library.gpu_problems.empty())
    throw InputError(
        fmt::format("there is no usable device '{}': {}", name, library.gpu_problems[0].what),
        {.where = "--device", .remedy = library.gpu_problems[0].remedy});
  throw InputError(
      fmt::format("there is no device '{}'", name),
      {.where = "--device",
       .remedy = library.built_with_cuda
                     ? "use cpu, cuda or cuda:N; `antisd doctor` lists the devices"
                     : "this binary has no CUDA; build with `make CUDA=1` or use cpu"});
}

int visible_gpus() {
  return static_cast<int>(describe_tensor_library().gpus.size());
}

}  // namespace antisd::inline cli
