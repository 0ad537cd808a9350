// The definition of a model family in one place: how its config.json is read, which parameters a
// layer has, and the layer's maths. All other code (shape, weights, rotary positions, forward
// passes, plans) uses the spec and does not depend on a family's name. Each family is one file of
// model/architectures, NAME.cpp, with a function NAME_architecture() that returns its spec.
//
//   shape.architecture = find_architecture("qwen3");
//   shape.architecture->layer(stream, weights, inputs);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/config_fields.h"
#include "model/layer.h"
#include "model/layer_parameters.h"

namespace antisd::inline model {

// Which layers attend only to the last `sliding_window` keys.
struct WindowRule {
  bool always = false;         // else only where use_sliding_window is true
  bool by_layer_types = true;  // if config.json has layer_types, they decide
  // Otherwise this decides, for a model with windows.
  bool (*slides)(const ConfigFields& fields, std::int64_t layer) = nullptr;
};

// The position of a layer's two norms, for layers of exactly one of these forms:
//   kNormsBefore: x += attention(first_norm(x)); x += gated_unit(second_norm(x))
//   kNormsAfter:  x += first_norm(attention(x)); x += second_norm(gated_unit(x))
// Queries and keys are normed if there are weights for it.
enum class PanelForm { kNormsBefore, kNormsAfter };

struct ArchitectureSpec {
  std::string model_type;  // in config.json

  // Defaults if config.json has no such field.
  std::int64_t kv_heads = 0;  // 0: as many as heads
  std::int64_t head_dim = 0;  // 0: hidden / heads
  std::int64_t max_positions = 32'768;
  double norm_eps = 1e-6;
  double rope_theta = 10'000;

  std::optional<WindowRule> windows = {};  // none: every layer sees all keys
  bool scales_rope_in_windows = true;  // false: rope_scaling is for layers without a window alone
  // Fields that only this family has: biases first; experts once the layers are known.
  void (*read_biases)(const ConfigFields& fields, ModelShape& shape) = nullptr;
  void (*read_experts)(const ConfigFields& fields, ModelShape& shape) = nullptr;

  // Names on disk; a layer's tensors start with `layers_prefix` and its number.
  std::string embedding_tensor = "model.embed_tokens.weight";
  std::string layers_prefix = "model.layers.";
  std::string final_norm_tensor = "model.norm.weight";
  std::string head_tensor = "lm_head.weight";

  void (*parameters)(LayerParameters& layer) = nullptr;
  // Adds one layer's output to the stream.
  void (*layer)(ResidualStream& x, const LayerWeights& w, const LayerInputs& in) = nullptr;
  // Whether `layer` has one of these forms, so that a CPU may compute it on panels
  // (dense_forward.h). If not set, the family's own layer always runs.
  std::optional<PanelForm> panel_form = {};
};

// All known families: those of model/architectures, by name. CMake generates this function.
const std::vector<const ArchitectureSpec*>& architectures();
const ArchitectureSpec* find_architecture(const std::string& model_type);  // null: unknown

// All parameters of a model in forward order.
std::vector<ParameterSpec> parameter_specs(const ModelShape& shape);

// Qwen's rule: windows from layer `max_window_layers` on.
bool slides_from_max_window_layers(const ConfigFields& fields, std::int64_t layer);

// For read_biases: `attention_bias` applies to queries, keys, values and the output.
void read_attention_bias(const ConfigFields& fields, ModelShape& shape);

// The window of each layer, 0 for none.
std::vector<std::int64_t> read_windows(const ConfigFields& fields,
                                       const std::optional<WindowRule>& rule, std::int64_t layers);

}  // namespace antisd::inline model
