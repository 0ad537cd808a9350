#include "model/architecture.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/check.h"

namespace antisd::inline model {
namespace {

ParameterSpec whole_tensor(std::string name, std::string block, ParameterKind kind,
                           std::vector<std::int64_t> sizes, const std::string& tensor) {
  ParameterSpec spec{.name = std::move(name), .block = std::move(block), .kind = kind};
  spec.sizes = sizes;
  spec.slices.push_back({.name = tensor, .sizes = std::move(sizes)});
  return spec;
}

}  // namespace

const ArchitectureSpec* find_architecture(const std::string& model_type) {
  for (const ArchitectureSpec* spec : architectures()) {
    if (spec->model_type == model_type) return spec;
  }
  return nullptr;
}

std::vector<ParameterSpec> parameter_specs(const ModelShape& shape) {
  ANTISD_CHECK(shape.architecture != nullptr);
  const ArchitectureSpec& architecture = *shape.architecture;
  std::vector<ParameterSpec> specs;
  specs.push_back(whole_tensor("embedding", "embedding", ParameterKind::kMatrix,
                               {shape.vocabulary, shape.hidden}, architecture.embedding_tensor));
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    LayerParameters layer(shape, i);
    architecture.parameters(layer);
    std::ranges::move(layer.take(), std::back_inserter(specs));
  }
  specs.push_back(whole_tensor("final_norm", "head", ParameterKind::kNorm, {shape.hidden},
                               architecture.final_norm_tensor));
  if (!shape.tied_head) {
    specs.push_back(whole_tensor("head", "head", ParameterKind::kMatrix,
                                 {shape.vocabulary, shape.hidden}, architecture.head_tensor));
  }
  for (ParameterSpec& spec : specs)
    if (shape.lora && !spec.is_adapter()) spec.trainable = false;
  return specs;
}

bool slides_from_max_window_layers(const ConfigFields& fields, std::int64_t layer) {
  return layer >= fields.integer("max_window_layers", 28);
}

void read_attention_bias(const ConfigFields& fields, ModelShape& shape) {
  shape.qkv_bias = shape.output_bias = fields.boolean("attention_bias", false);
}

std::vector<std::int64_t> read_windows(const ConfigFields& fields,
                                       const std::optional<WindowRule>& rule, std::int64_t layers) {
  std::vector<std::int64_t> windows(static_cast<std::size_t>(layers), 0);
  if (!rule) return windows;
  const bool uses = rule->always || fields.boolean("use_sliding_window", false);
  const std::int64_t window = uses ? fields.positive("sliding_window", 4096) : 0;
  const Json* types = rule->by_layer_types ? fields.find("layer_types") : nullptr;
  if (types != nullptr &&
      (!types->is_array() || static_cast<std::int64_t>(types->size()) != layers)) {
    fields.wrong("layer_types", *types, fmt::format("a list of {} names, one a layer", layers));
  }
  for (std::int64_t i = 0; i < layers; ++i) {
    bool slides = false;
    if (types != nullptr) {
      const Json& type = (*types)[i];
      if (type != "sliding_attention" && type != "full_attention") {
        fields.wrong("layer_types", type, "sliding_attention or full_attention");
      }
      slides = type == "sliding_attention";
      if (slides && !uses)
        fields.wrong("use_sliding_window", false, "true where layer_types has sliding_attention");
    } else {
      slides = uses && rule->slides(fields, i);
    }
    if (slides) windows[i] = window;
  }
  return windows;
}

}  // namespace antisd::inline model
