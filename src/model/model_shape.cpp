#include "model/model_shape.h"

#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "core/error.h"
#include "io/atomic_file.h"
#include "model/rope_settings.h"

namespace antisd {
namespace {

// Fields of config.json, typed, with errors that name the file and the field. A null is an absent
// field.
class Fields {
 public:
  Fields(const Json& config, std::string where) : config_(config), where_(std::move(where)) {}

  const Json* find(const std::string& name) const {
    const auto field = config_.find(name);
    return field == config_.end() || field->is_null() ? nullptr : &*field;
  }

  std::int64_t integer(const std::string& name, std::optional<std::int64_t> fallback = {}) const {
    const Json* field = find(name);
    if (field == nullptr) {
      if (fallback) return *fallback;
      throw InputError(
          fmt::format("the field '{}' is missing", name),
          {.where = where_, .remedy = "use the config.json that belongs to the weights"});
    }
    if (!field->is_number_integer() || *field < 0 || *field > (std::int64_t{1} << 40))
      wrong(name, *field, "a count");
    return field->get<std::int64_t>();
  }

  std::int64_t positive(const std::string& name, std::optional<std::int64_t> fallback = {}) const {
    const std::int64_t value = integer(name, fallback);
    if (value == 0) wrong(name, Json(value), "at least 1");
    return value;
  }

  double number(const std::string& name, double fallback) const {
    const Json* field = find(name);
    if (field == nullptr) return fallback;
    if (!field->is_number()) wrong(name, *field, "a number");
    return field->get<double>();
  }

  bool boolean(const std::string& name, bool fallback) const {
    const Json* field = find(name);
    if (field == nullptr) return fallback;
    if (!field->is_boolean()) wrong(name, *field, "true or false");
    return field->get<bool>();
  }

  // A field whose only understood value is `value`.
  void must_be(const std::string& name, const Json& value) const {
    const Json* field = find(name);
    if (field != nullptr && *field != value)
      wrong(name, *field, value.dump() + " (the only value understood)");
  }

  [[noreturn]] void wrong(const std::string& name, const Json& value,
                          const std::string& wanted) const {
    throw InputError(fmt::format("'{}' is {}", name, value.dump()),
                     {.where = where_, .remedy = "it must be " + wanted});
  }

  const Json& json() const { return config_; }
  const std::string& where() const { return where_; }

 private:
  const Json& config_;
  std::string where_;
};

Architecture read_architecture(const Fields& fields) {
  static const std::map<std::string, Architecture> by_type = {
      {"qwen3", Architecture::kQwen3},
      {"qwen3_moe", Architecture::kQwen3Moe},
      {"olmo3", Architecture::kOlmo3},
      {"llama", Architecture::kLlama},
      {"qwen2", Architecture::kQwen2}};
  const Json* type = fields.find("model_type");
  if (type != nullptr && type->is_string()) {
    if (const auto found = by_type.find(type->get<std::string>()); found != by_type.end())
      return found->second;
  }
  throw InputError(
      fmt::format("unknown model_type {}", type == nullptr ? "(absent)" : type->dump()),
      {.where = fields.where(), .remedy = "known: qwen3, qwen3_moe, olmo3, llama, qwen2"});
}

// Fields that change the maths of some model of these families, so that an unknown one is noticed.
void refuse_unknown_maths(const Fields& fields) {
  fields.must_be("hidden_act", "silu");
  fields.must_be("partial_rotary_factor", 1.0);
  if (fields.number("attention_dropout", 0) != 0)
    fields.wrong("attention_dropout", *fields.find("attention_dropout"), "0");
  for (const char* name : {"quantization_config", "logit_scale", "final_logit_softcapping",
                           "attn_logit_softcapping", "residual_multiplier", "embedding_multiplier",
                           "logits_scaling", "attention_multiplier", "clip_qkv", "n_shared_experts",
                           "shared_expert_intermediate_size", "query_pre_attn_scalar"}) {
    if (const Json* field = fields.find(name))
      fields.wrong(name, *field, "absent: this model's maths is not known here");
  }
}

// Which layers see only a window, by the rules of each family.
std::vector<std::int64_t> read_windows(const Fields& fields, Architecture architecture,
                                       std::int64_t layers) {
  std::vector<std::int64_t> windows(layers, 0);
  if (architecture == Architecture::kLlama) return windows;
  const bool always = architecture == Architecture::kOlmo3;
  const bool uses = always || fields.boolean("use_sliding_window", false);
  const std::int64_t window = uses ? fields.positive("sliding_window", 4096) : 0;
  const Json* types =
      architecture == Architecture::kQwen3Moe ? nullptr : fields.find("layer_types");
  if (types != nullptr &&
      (!types->is_array() || static_cast<std::int64_t>(types->size()) != layers)) {
    fields.wrong("layer_types", *types, fmt::format("a list of {} names, one a layer", layers));
  }
  for (std::int64_t i = 0; i < layers; ++i) {
    bool slides;
    if (types != nullptr) {
      const Json& type = (*types)[i];
      if (type != "sliding_attention" && type != "full_attention") {
        fields.wrong("layer_types", type, "sliding_attention or full_attention");
      }
      slides = type == "sliding_attention";
      if (slides && !uses)
        fields.wrong("use_sliding_window", false, "true where layer_types has sliding_attention");
    } else if (always) {
      slides = (i + 1) % 4 != 0;
    } else if (architecture == Architecture::kQwen3Moe) {
      slides = uses;
    } else {
      slides = uses && i >= fields.integer("max_window_layers", 28);
    }
    if (slides) windows[i] = window;
  }
  return windows;
}

void read_experts(const Fields& fields, ModelShape& shape) {
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

// Keeps every later product of sizes far from overflow.
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
  const Fields fields(config, where);
  ModelShape shape;
  shape.architecture = read_architecture(fields);
  refuse_unknown_maths(fields);
  const bool qwen3 = shape.architecture == Architecture::kQwen3,
             moe = shape.architecture == Architecture::kQwen3Moe;
  const bool olmo3 = shape.architecture == Architecture::kOlmo3,
             llama = shape.architecture == Architecture::kLlama;
  const bool qwen2 = shape.architecture == Architecture::kQwen2;

  shape.vocabulary = fields.positive("vocab_size");
  shape.hidden = fields.positive("hidden_size");
  shape.intermediate = fields.positive("intermediate_size");
  shape.heads = fields.positive("num_attention_heads");
  // Absent: the family's default; written as null: as many as query heads.
  const bool kv_null =
      config.contains("num_key_value_heads") && config["num_key_value_heads"].is_null();
  const std::int64_t kv_default = kv_null || olmo3 || llama ? shape.heads : moe ? 4 : 32;
  shape.kv_heads = fields.positive("num_key_value_heads", kv_default);
  if (shape.heads % shape.kv_heads != 0) {
    fields.wrong("num_key_value_heads", shape.kv_heads,
                 fmt::format("a divisor of the {} heads", shape.heads));
  }
  shape.head_dim = fields.positive("head_dim", qwen3 ? 128 : shape.hidden / shape.heads);
  if (shape.head_dim % 2 != 0)
    fields.wrong("head_dim", shape.head_dim, "even, for rotary positions");
  shape.max_positions = fields.positive("max_position_embeddings", olmo3 || llama ? 2048 : 32'768);
  shape.norm_eps = fields.number("rms_norm_eps", olmo3 ? 1e-5 : 1e-6);
  shape.tied_head = fields.boolean("tie_word_embeddings", false);
  shape.qkv_bias = qwen2 || fields.boolean("attention_bias", false);
  shape.output_bias = !qwen2 && fields.boolean("attention_bias", false);
  shape.mlp_bias = llama && fields.boolean("mlp_bias", false);

  const std::int64_t layers = fields.positive("num_hidden_layers");
  if (layers > 10'000) fields.wrong("num_hidden_layers", layers, "at most 10000");
  shape.layers.resize(layers);
  const std::vector<std::int64_t> windows = read_windows(fields, shape.architecture, layers);
  const RopeSettingsPair rope = read_rope_settings(config, shape, where);
  for (std::int64_t i = 0; i < layers; ++i) {
    shape.layers[i].window = windows[i];
    shape.layers[i].rope = windows[i] > 0 ? rope.sliding : rope.full;
  }
  if (moe) read_experts(fields, shape);
  check_size(shape, where);
  return shape;
}

ModelShape read_model_shape(const std::filesystem::path& config_file) {
  return parse_model_shape(parse_json(read_file(config_file), config_file.string()),
                           config_file.string());
}

std::int64_t ModelShape::parameter_count() const {
  const std::int64_t q = heads * head_dim, kv = kv_heads * head_dim;
  std::int64_t count = vocabulary * hidden * (tied_head ? 1 : 2) + hidden;
  for (const LayerShape& layer : layers) {
    count += hidden * (2 * q + 2 * kv) + 2 * hidden;  // projections, two norms
    if (architecture == Architecture::kOlmo3) count += q + kv;
    if (architecture == Architecture::kQwen3 || architecture == Architecture::kQwen3Moe)
      count += 2 * head_dim;
    count += (qkv_bias ? q + 2 * kv : 0) + (output_bias ? hidden : 0);
    count += layer.sparse ? experts * (3 * hidden * expert_intermediate + hidden)
                          : 3 * hidden * intermediate + (mlp_bias ? 2 * intermediate + hidden : 0);
  }
  return count;
}

std::int64_t ModelShape::active_parameter_count() const {
  std::int64_t count = parameter_count();
  for (const LayerShape& layer : layers) {
    if (layer.sparse) count -= (experts - experts_per_token) * 3 * hidden * expert_intermediate;
  }
  return count;
}

}  // namespace antisd
