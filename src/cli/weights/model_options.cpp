#include "cli/weights/model_options.h"

#include <ATen/Parallel.h>

#include "cli/weights/device_choice.h"
#include "core/thread_governor.h"
#include "core/thread_pool.h"
#include "hub/cache.h"
#include "model/adapter_files.h"
#include "model/weights.h"

namespace antisd::inline cli {
void add_model_argument(CLI::App& app, ModelOptions& options) {
  app.add_option("MODEL", options.model,
                 "Hugging Face model directory or name, or a PEFT directory with a LoRA adapter")
      ->required();
}

void add_device_options(CLI::App& app, ModelOptions& options) {
  app.add_option("--base", options.base,
                 "the model below an adapter; default: the one that adapter_config.json names");
  app.add_option("--device", options.device, "cpu, cuda, cuda:N, or auto: a GPU if there is one")
      ->capture_default_str();
  app.add_option("--dtype", options.dtype, "auto is fp32 on a CPU and bf16 on a GPU")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "fp32", "bf16", "fp16"}));
  app.add_option("--base-dtype", options.base_dtype,
                 "format of the layers' matrices: model is --dtype's; int8 and nf4 take a half and "
                 "a quarter of 16 bits")
      ->check(CLI::IsMember({"model", "int8", "nf4"}));
  app.add_option("--threads", options.threads,
                 "threads of the tensor library; 0: as many as the machine has free")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  app.add_flag("--check-weights", options.check_weights,
               "reject weights with NaN or infinity, by name");
}

CausalLm open_model(const ModelOptions& options, int local_rank) {
  at::set_num_threads(options.threads > 0 ? options.threads
                                          : unclaimed_threads(available_threads()));
  const at::Device device = choose_device(options.device, local_rank);
  return load_model(
      model_folder(options.model), device, compute_dtype(device, options.dtype),
      {.check_weights = options.check_weights,
       .base = options.base,
       .base_format = base_format(options.base_dtype.empty() ? "model" : options.base_dtype)});
}

std::filesystem::path files_of(const ModelOptions& options) {
  return base_directory(model_folder(options.model), options.base);
}

}  // namespace antisd::inline cli
