// `merge`: base + adapter as a whole Hugging Face directory.

#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "core/error.h"
#include "core/note.h"
#include "hub/cache.h"
#include "model/adapter_files.h"
#include "model/weights.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;

struct MergeOptions {
  std::string adapter, out, base;
  std::string dtype = "fp32";
};

// A checkpoint holds its adapter in a folder of its own.
fs::path adapter_of(const fs::path& path) {
  if (is_adapter_directory(path)) return path;
  if (is_adapter_directory(path / "adapter")) return path / "adapter";
  throw InputError("it holds no adapter_config.json",
                   {.where = path.string(),
                    .remedy = "name a PEFT directory, or a checkpoint of a run with model.lora"});
}

int merge(const MergeOptions& options) {
  const fs::path adapter = adapter_of(model_folder(options.adapter)), out = options.out;
  if (fs::exists(out) && !fs::is_empty(out))
    throw InputError("the folder is not empty", {.where = out.string(), .remedy = "name another"});
  const fs::path base = base_directory(adapter, options.base);
  CausalLm model = load_model(adapter, at::kCPU, at::kFloat, {.base = base});
  merge_adapters(model);
  save_model(model, base, out, options.dtype == "bf16" ? at::kBFloat16 : at::kFloat);
  note(fmt::format("{} + {} -> {}, {}", base.string(), adapter.string(), out.string(),
                   options.dtype));
  return 0;
}

}  // namespace

std::function<int()> add_merge(CLI::App& app) {
  const auto options = std::make_shared<MergeOptions>();
  app.add_option("ADAPTER", options->adapter,
                 "PEFT directory with a LoRA adapter, or a checkpoint that holds one")
      ->required();
  app.add_option("-o,--out", options->out, "the new directory")->required();
  app.add_option("--dtype", options->dtype, "precision of the weights that are written")
      ->capture_default_str()
      ->check(CLI::IsMember({"fp32", "bf16"}));
  app.add_option("--base", options->base,
                 "the model below the adapter; default: the one that adapter_config.json names");
  return [options] { return merge(*options); };
}

}  // namespace antisd::inline cli
