// What config.json says about a model's maths. A field that would change the maths and is not
// supported is an error that names it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/json.h"
#include "ops/kernels/quantized_formulas.cuh"

namespace antisd::inline model {

struct ArchitectureSpec;  // architecture.h

struct RopeSettings {
  enum class Kind { kDefault, kLinear, kLlama3, kYarn };
  Kind kind = Kind::kDefault;
  double theta = 10'000;
  double factor = 1;
  double original_positions = 0;
  double low_frequency_factor = 1, high_frequency_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;                        // yarn
  bool truncate = true;
  double attention_factor = 1;  // multiplies cosine and sine
  bool operator==(const RopeSettings&) const = default;
};

struct LayerShape {
  std::int64_t window = 0;  // keys that a query sees; 0: all before it
  bool sparse = false;      // experts instead of one gated unit
  RopeSettings rope;
};

// Low-rank adapters (LoRA): beside each weight W of a named projection a pair A [rank, in],
// B [out, rank]; y = W x + alpha / rank B (A x). Only they are trained.
struct LoraShape {
  std::int64_t rank = 0;
  double alpha = 0;
  std::vector<std::string> targets;  // projections by their names on disk: "q_proj"; sorted
  bool experts = false;              // those of experts too

  double scale() const { return alpha / static_cast<double>(rank); }
  std::string text() const;  // "rank 8, alpha 16 on q_proj, v_proj"
  bool operator==(const LoraShape&) const = default;
};

struct ModelShape {
  const ArchitectureSpec* architecture = nullptr;
  std::int64_t vocabulary = 0;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t max_positions = 0;
  double norm_eps = 1e-6;
  bool tied_head = false;
  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  std::int64_t experts = 0, experts_per_token = 0, expert_intermediate = 0;
  bool normalise_experts = false;
  std::vector<LayerShape> layers;
  // The format of the layers' matrices, which are frozen then; none: the compute precision. Not in
  // config.json.
  std::optional<QuantizedKind> base;
  std::optional<LoraShape> lora;  // not in config.json

  std::int64_t parameter_count() const;
  std::int64_t trainable_parameter_count() const;
  std::int64_t active_parameter_count() const;  // per token: only its experts
  // Of forward and backward pass, per token: frozen weights have no gradient.
  double training_flops() const;
};

// InputError with file and field.
ModelShape read_model_shape(const std::filesystem::path& config_file);
ModelShape parse_model_shape(const Json& config, const std::string& where);
// Of a family that is known already, whatever model_type says.
ModelShape parse_model_shape(const ArchitectureSpec& architecture, const Json& config,
                             const std::string& where);

}  // namespace antisd::inline model
