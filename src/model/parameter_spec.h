// What a parameter is, before it has elements: its name, sizes and block, and which tensors of a
// Hugging Face directory it is made of. In memory the projections of queries, keys and values lie
// in one matrix, so do gate and up and the experts of a layer; on disk each has a tensor of its
// own.
//
//   for (const ParameterSpec& spec : parameter_specs(shape)) elements += spec.count();
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace antisd::inline model {

// One tensor of the directory as a part of one of our parameters.
struct WeightSlice {
  std::string name;          // as in the files: "model.layers.0.self_attn.q_proj.weight"
  std::int64_t expert = -1;  // of a parameter of all experts; -1: of any other
  std::int64_t first_row = 0;
  std::vector<std::int64_t> sizes;
  int order = 0;  // files hold the tensors of a block by this, then by expert

  // The part of `whole`, a tensor of the parameter's sizes (its value, gradient or moment). Shares
  // its memory.
  at::Tensor of(const at::Tensor& whole) const;
};

// What a new model is initialised by.
enum class ParameterKind { kMatrix, kNorm, kBias };

struct ParameterSpec {
  std::string name;   // ours: "layers.0.qkv"
  std::string block;  // whose elements lie together: "embedding", "layers.0" or "head"
  std::vector<std::int64_t> sizes;
  ParameterKind kind = ParameterKind::kMatrix;
  std::vector<WeightSlice> slices;  // all of its elements
  bool trainable = true;  // else it has no gradient, master or moments, and no step changes it

  std::int64_t count() const;  // of elements
};

}  // namespace antisd::inline model
