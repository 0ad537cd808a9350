// Qwen3-MoE: Qwen3 with experts instead of the gated unit in its sparse layers.
#include <set>

#include <fmt/format.h>

#include "model/architecture.h"

namespace antisd::inline model {
namespace {

void read_qwen3_moe_experts(const ConfigFields& fields, ModelShape& shape) {
  const char* count = fields.find("num_experts") != nullptr ? "num_experts" : "num_local_experts";
  shape.experts = fields.integer(count, 128);
  if (shape.experts == 0) return;
  shape.experts_per_token = fields.positive("num_experts_per_tok", 8);
  shape.expert_intermediate = fields.positive("moe_intermediate_size", 768);
  shape.normalise_experts = fields.boolean("norm_topk_prob", false);
  if (shape.experts_per_token > shape.experts) {
    fields.wrong("num_experts_per_tok", shape.experts_per_token,
                 fmt::format("at most {}", shape.experts));
  }
  std::set<std::int64_t> dense;
  if (const Json* only = fields.find("mlp_only_layers")) {
    if (!only->is_array()) fields.wrong("mlp_only_layers", *only, "a list of layers");
    for (const Json& layer : *only) {
      if (!layer.is_number_integer()) fields.wrong("mlp_only_layers", *only, "a list of layers");
      dense.insert(layer.get<std::int64_t>());
    }
  }
  const std::int64_t step = fields.positive("decoder_sparse_step", 1);
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    shape.layers[i].sparse = dense.count(layer) == 0 && (layer + 1) % step == 0;
  }
}

void qwen3_moe_parameters(LayerParameters& layer) {
  if (!layer.is_sparse()) return qwen3_architecture().parameters(layer);
  layer.norm("first_norm", "input_layernorm");
  layer.norm("second_norm", "post_attention_layernorm");
  layer.attention(QkNorm::kHead);
  layer.experts();
}

void qwen3_moe_layer(ResidualStream& x, const LayerWeights& w, const LayerInputs& in) {
  if (!in.layer.sparse) return qwen3_architecture().layer(x, w, in);
  const ModelShape& shape = in.shape;
  x.add(self_attention(x.normed(w.first_norm, shape.norm_eps), w, QkNorm::kHead, in));
  x.add(apply(w.experts, x.normed(w.second_norm, shape.norm_eps), shape.experts_per_token,
              shape.normalise_experts));
}

bool slides_always(const ConfigFields&, std::int64_t) {
  return true;
}

}  // namespace

const ArchitectureSpec& qwen3_moe_architecture() {
  static const ArchitectureSpec spec = {
      .model_type = "qwen3_moe",
      .kv_heads = 4,
      .windows = WindowRule{.by_layer_types = false, .slides = slides_always},
      .read_biases = read_attention_bias,
      .read_experts = read_qwen3_moe_experts,
      .parameters = qwen3_moe_parameters,
      .layer = qwen3_moe_layer,
      .panel_form = PanelForm::kNormsBefore};  // for models without a sparse layer
  return spec;
}

}  // namespace antisd::inline model
