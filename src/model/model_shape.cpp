#include "model/model_shape.h"

#include <fmt/format.h>

#include "core/error.h"
#include "io/atomic_file.h"
#include "model/architecture.h"
#include "model/rope_settings.h"

namespace antisd::inline model {
namespace {

const ArchitectureSpec& read_architecture(const ConfigFields& fields) {
  const Json* type = fields.find("model_type");
  if (type != nullptr && type->is_string()) {
    if (const ArchitectureSpec* known = find_architecture(type->get<std::string>())) return *known;
  }
  std::vector<std::string> names;
  for (const ArchitectureSpec* known : architectures())
    names.push_back(known->model_type);
  throw InputError(
      fmt::format("unknown model_type {}", type == nullptr ? "(absent)" : type->dump()),
      {.where = fields.where(), .remedy = fmt::format("known: {}", fmt::join(names, ", "))});
}

// Rejects fields that change the maths of some model of these families and are not supported.
void refuse_unknown_maths(const ConfigFields& fields) {
  fields.must_be("hidden_act", "silu");
  fields.must_be("partial_rotary_factor", 1.0);
  if (fields.number("attention_dropout", 0) != 0)
    fields.wrong("attention_dropout", *fields.find("attention_dropout"), "0");
  for (const char* name : {"quantization_config", "logit_scale", "final_logit_softcapping",
                           "attn_logit_softcapping", "residual_multiplier", "embedding_multiplier",
                           "logits_scaling", "attention_multiplier", "clip_qkv", "n_shared_experts",
                           "shared_expert_intermediate_size", "query_pre_attn_scalar"}) {
    if (const Json* field = fields.find(name))
      fields.wrong(name, *field, "absent: this model's maths is not supported");
  }
}

// Keeps all later products of sizes far from overflow.
void check_size(const ModelShape& shape, const std::string& where) {
  constexpr double kMost = 1e14;
  const auto hidden = static_cast<double>(shape.hidden);
  const double layer_width =
      2.0 * static_cast<double>(shape.heads + shape.kv_heads) *
          static_cast<double>(shape.head_dim) +
      3.0 * static_cast<double>(shape.intermediate) +
      3.0 * static_cast<double>(shape.experts) * static_cast<double>(shape.expert_intermediate + 1);
  const double count = hidden * (2.0 * static_cast<double>(shape.vocabulary) +
                                 static_cast<double>(shape.layers.size()) * layer_width);
  if (count <= kMost && static_cast<double>(shape.max_positions) <= kMost) return;
  throw InputError(fmt::format("the sizes make a model of about {:.1e} parameters", count),
                   {.where = where, .remedy = "use the config.json that belongs to the weights"});
}

}  // namespace

ModelShape parse_model_shape(const Json& config, const std::string& where) {
  if (!config.is_object())
    throw InputError("not a JSON object", {.where = where, .remedy = "use a model's config.json"});
  return parse_model_shape(read_architecture(ConfigFields(config, where)), config, where);
}

ModelShape parse_model_shape(const ArchitectureSpec& architecture, const Json& config,
                             const std::string& where) {
  const ConfigFields fields(config, where);
  ModelShape shape;
  shape.architecture = &architecture;
  refuse_unknown_maths(fields);

  shape.vocabulary = fields.positive("vocab_size");
  shape.hidden = fields.positive("hidden_size");
  shape.intermediate = fields.positive("intermediate_size");
  shape.heads = fields.positive("num_attention_heads");
  // Absent: the family's default; null: as many as query heads.
  const bool kv_null =
      config.contains("num_key_value_heads") && config["num_key_value_heads"].is_null();
  const std::int64_t kv_default =
      kv_null || architecture.kv_heads == 0 ? shape.heads : architecture.kv_heads;
  shape.kv_heads = fields.positive("num_key_value_heads", kv_default);
  if (shape.heads % shape.kv_heads != 0) {
    fields.wrong("num_key_value_heads", shape.kv_heads,
                 fmt::format("a divisor of the {} heads", shape.heads));
  }
  const std::int64_t dim_default =
      architecture.head_dim == 0 ? shape.hidden / shape.heads : architecture.head_dim;
  shape.head_dim = fields.positive("head_dim", dim_default);
  if (shape.head_dim % 2 != 0)
    fields.wrong("head_dim", shape.head_dim, "even, for rotary positions");
  shape.max_positions = fields.positive("max_position_embeddings", architecture.max_positions);
  shape.norm_eps = fields.number("rms_norm_eps", architecture.norm_eps);
  shape.tied_head = fields.boolean("tie_word_embeddings", false);
  if (architecture.read_biases != nullptr) architecture.read_biases(fields, shape);

  const std::int64_t layers = fields.positive("num_hidden_layers");
  if (layers > 10'000) fields.wrong("num_hidden_layers", layers, "at most 10000");
  shape.layers.resize(layers);
  const std::vector<std::int64_t> windows = read_windows(fields, architecture.windows, layers);
  const RopeSettingsPair rope = read_rope_settings(config, shape, where);
  for (std::int64_t i = 0; i < layers; ++i) {
    shape.layers[i].window = windows[i];
    shape.layers[i].rope = windows[i] > 0 ? rope.sliding : rope.full;
  }
  if (architecture.read_experts != nullptr) architecture.read_experts(fields, shape);
  check_size(shape, where);
  return shape;
}

ModelShape read_model_shape(const std::filesystem::path& config_file) {
  return parse_model_shape(parse_json(read_file(config_file), config_file.string()),
                           config_file.string());
}

std::int64_t ModelShape::parameter_count() const {
  std::int64_t count = 0;
  for (const ParameterSpec& spec : parameter_specs(*this))
    count += spec.count();
  return count;
}

double ModelShape::training_flops() const {
  const std::int64_t all = active_parameter_count();
  return 4 * static_cast<double>(all) +
         2 * static_cast<double>(lora ? trainable_parameter_count() : all);
}

std::string LoraShape::text() const {
  return fmt::format("rank {}, alpha {} on {}{}", rank, alpha, fmt::join(targets, ", "),
                     experts ? ", of experts too" : "");
}

std::int64_t ModelShape::trainable_parameter_count() const {
  std::int64_t count = 0;
  for (const ParameterSpec& spec : parameter_specs(*this))
    if (spec.trainable) count += spec.count();
  return count;
}

std::int64_t ModelShape::active_parameter_count() const {
  std::int64_t count = 0;
  for (const ParameterSpec& spec : parameter_specs(*this)) {
    const bool of_experts = spec.slices.front().expert >= 0;
    count += of_experts ? spec.count() / experts * experts_per_token : spec.count();
  }
  return count;
}

}  // namespace antisd::inline model
