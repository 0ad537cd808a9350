// One layer's weights and what its maths is made of. The architectures differ in how they put these
// together; each has a file of its own.
#pragma once

#include <functional>

#include "model/model_shape.h"
#include "model/residual_stream.h"
#include "ops/attention_inputs.h"
#include "ops/experts.h"

namespace antisd {

struct LayerWeights {
  at::Tensor first_norm, second_norm;  // [hidden]
  at::Tensor qkv, qkv_bias;            // [(heads + 2 kv_heads) head_dim, hidden]
  at::Tensor q_norm, k_norm;           // [head_dim], or the projection's width
  at::Tensor output, output_bias;      // [hidden, heads * head_dim]
  at::Tensor gate_up, gate_up_bias;    // [2 * intermediate, hidden], gate first
  at::Tensor down, down_bias;          // [hidden, intermediate]
  ExpertWeights experts;               // of a sparse layer, in place of gate_up and down
};

// Attention proper: queries, keys and values of the new tokens -> their mixtures. Scoring reads the
// packed batch; sampling its cache, where keys and values then are already.
using Attend =
    std::function<at::Tensor(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v)>;

struct LayerInputs {
  const ModelShape& shape;
  const LayerShape& layer;
  const RopeTable& rope;
  const at::Tensor& positions;  // int32 [tokens]
  const Attend& attend;
  const CacheTarget* cache;  // where keys and values go when sampling, or null
};

// x: [tokens, hidden]. What they yield still has to go through its last matrix.
Product self_attention(const at::Tensor& x, const LayerWeights& w, QkNorm norm,
                       const LayerInputs& in);
Product gated_unit(const at::Tensor& x, const LayerWeights& w);

// Each adds one layer's work to the stream.
void qwen3_layer(ResidualStream& x, const LayerWeights& w, const LayerInputs& in);
void qwen3_moe_layer(ResidualStream& x, const LayerWeights& w, const LayerInputs& in);
void olmo3_layer(ResidualStream& x, const LayerWeights& w, const LayerInputs& in);
void llama_layer(ResidualStream& x, const LayerWeights& w, const LayerInputs& in);
void qwen2_layer(ResidualStream& x, const LayerWeights& w, const LayerInputs& in);

}  // namespace antisd
