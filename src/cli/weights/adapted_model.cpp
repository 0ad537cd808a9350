#include "cli/weights/adapted_model.h"

#include <fmt/format.h>

#include "core/error.h"
#include "model/adapted_shape.h"
#include "model/adapter_files.h"
#include "model/weights.h"

namespace antisd::inline cli {

CausalLm load_with_adapters(const std::filesystem::path& base, const RunConfig& config,
                            at::Device device) {
  CausalLm model(configured_shape(read_model_shape(base / "config.json"), config.model), device,
                 compute_dtype(device, config.model.dtype));
  load_weights(model, base);
  initialise_adapters(model, static_cast<std::uint64_t>(config.train.seed));
  return model;
}

void refuse_adapter(const std::filesystem::path& model) {
  if (!is_adapter_directory(model)) return;
  throw InputError(
      fmt::format("{} is an adapter, not a whole model", model.string()),
      {.where = "model.path",
       .remedy = "merge it first (`antisd merge`); or name its base here, and its checkpoint in "
                 "train.init_from to train the adapter further"});
}

}  // namespace antisd::inline cli
