// The description of a parameter: its name, sizes and block, and the tensors of a Hugging Face
// directory that it consists of. In memory the projections of queries, keys and values are one
// matrix, so are gate and up, and the experts of a layer; on disk each is a separate tensor.
//
//   for (const ParameterSpec& spec : parameter_specs(shape)) elements += spec.count();
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "ops/quantized_weight.h"

namespace antisd::inline model {

// One tensor of the directory as a part of one of our parameters.
struct WeightSlice {
  std::string name;          // as in the files: "model.layers.0.self_attn.q_proj.weight"
  std::int64_t expert = -1;  // for parameters that hold all experts; -1 otherwise
  std::int64_t first_row = 0;
  std::vector<std::int64_t> sizes;
  int order = 0;  // files sort a block's tensors by this, then by expert

  // The tensor's part of `whole`, which has the parameter's sizes (its value, gradient or moment).
  // Shares its memory.
  at::Tensor of(const at::Tensor& whole) const;
  QuantizedWeight of(const QuantizedWeight& whole) const {
    return {of(whole.codes), of(whole.scales), whole.columns};
  }
};

// Determines how a new model is initialised, and which file a parameter is in.
enum class ParameterKind { kMatrix, kNorm, kBias, kLoraA, kLoraB };

struct ParameterSpec {
  std::string name;   // ours: "layers.0.qkv"
  std::string block;  // its storage block: "embedding", "layers.0" or "head"
  std::vector<std::int64_t> sizes;
  ParameterKind kind = ParameterKind::kMatrix;
  std::vector<WeightSlice> slices;  // all of its elements
  bool trainable = true;            // false: no gradient, master or moments; never updated
  std::optional<QuantizedKind> quantized = {};  // its elements are codes, and it is frozen

  // Not part of the model's directory (adapter_files.h).
  bool is_adapter() const { return kind == ParameterKind::kLoraA || kind == ParameterKind::kLoraB; }
  std::int64_t count() const;  // of elements
};

}  // namespace antisd::inline model
