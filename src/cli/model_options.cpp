#include "cli/model_options.h"

#ifdef ANTISD_TORCH

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "core/error.h"
#include "model/weights.h"
#include "ops/device.h"

namespace antisd {
namespace {

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
                     ? "use cpu, cuda or cuda:N; `antisd doctor` lists what is here"
                     : "this binary has no CUDA; build with `make CUDA=1` or use cpu"});
}

at::ScalarType choose_dtype(const std::string& name, at::Device device) {
  if (name == "auto") return compute_dtype(device);
  if (name == "bf16" && device.is_cpu()) {
    throw InputError("the CPU computes in fp32 alone",
                     {.where = "--dtype", .remedy = "leave it out, or use a GPU"});
  }
  if (name == "fp32" && device.is_cuda()) {
    throw InputError("attention on a GPU computes in bf16 alone",
                     {.where = "--dtype", .remedy = "leave it out"});
  }
  return name == "bf16" ? at::kBFloat16 : at::kFloat;
}

}  // namespace

void add_model_argument(CLI::App& app, ModelOptions& options) {
  app.add_option("MODEL", options.model, "Hugging Face model directory")->required();
}

void add_device_options(CLI::App& app, ModelOptions& options) {
  app.add_option("--device", options.device, "cpu, cuda, cuda:N, or auto: a GPU where there is one")
      ->capture_default_str();
  app.add_option("--dtype", options.dtype, "auto is fp32 on a CPU, bf16 on a GPU")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "fp32", "bf16"}));
  app.add_option("--threads", options.threads, "threads of the tensor library")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app.add_flag("--check-weights", options.check_weights,
               "refuse weights that hold NaN or infinity, by name");
}

CausalLm open_model(const ModelOptions& options) {
  at::set_num_threads(options.threads);
  const at::Device device = choose_device(options.device);
  return load_model(options.model, device, choose_dtype(options.dtype, device),
                    {.check_weights = options.check_weights});
}

}  // namespace antisd

#endif
