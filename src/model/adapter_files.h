// Adapters to and from the directories of PEFT: adapter_config.json and adapter_model.safetensors.
//
//   save_adapter(model, base, "checkpoint/adapter");
//   const AdapterConfig adapter = read_adapter_config("some/adapter");
//   load_adapter(model, adapter);       // model.shape().lora == adapter.lora
//
// Read are plain LoRA and rsLoRA, with a rank and alpha for each module if there are any: smaller
// ranks are padded with zeros, and other scales are multiplied into B. What changes the maths and
// is not known here is refused by its name.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "model/causal_lm.h"

namespace antisd::inline model {

// Whether the directory holds an adapter and not a whole model.
bool is_adapter_directory(const std::filesystem::path& directory);

struct AdapterConfig {
  std::filesystem::path directory;
  std::filesystem::path base;  // as the file names it: absolute, or from the working directory
  LoraShape lora;
  // The modules that it adapts ("base_model.model.model.layers.0.self_attn.q_proj"), and the factor
  // of their B relative to LoraShape::scale().
  std::map<std::string, double> scales;
};

// InputError with file and field.
AdapterConfig read_adapter_config(const std::filesystem::path& directory);

// The directory of the model below an adapter: `chosen`, or if that is empty the one it names; of
// any other model, its own. InputError if an adapter's is not there.
std::filesystem::path base_directory(const std::filesystem::path& model,
                                     const std::filesystem::path& chosen = {});

// Sets the adapters of a model with this LoraShape; modules that the file does not have add
// nothing. InputError for tensors that do not fit.
void load_adapter(CausalLm& model, const AdapterConfig& adapter);

std::filesystem::path adapter_weights_file(const std::filesystem::path& directory);

// Writes what PEFT opens, in the model's precision.
void save_adapter(const CausalLm& model, const std::filesystem::path& base,
                  const std::filesystem::path& directory);

// A: uniform in +-1 / sqrt(in), as PEFT's; B: 0, so that training begins with the base.
void initialise_adapters(CausalLm& model, std::uint64_t seed);

// Adds every adapter to its weight. The adapters are then to be forgotten.
void merge_adapters(CausalLm& model);

// The model that an adapter was trained on.
struct BaseModel {
  std::filesystem::path path;  // absolute
  std::string fingerprint;     // of its files of weights
};

BaseModel identify_base(const std::filesystem::path& directory);

}  // namespace antisd::inline model
