// One layer's weights and the parts of its maths. Each architecture combines these in its own file.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "model/linear.h"
#include "model/model_shape.h"
#include "model/parameter_store.h"
#include "model/residual_stream.h"
#include "ops/attention_inputs.h"

namespace antisd::inline model {

// Borrowed from the store: changes of its values are visible here.
struct LayerWeights {
  at::Tensor first_norm, second_norm;        // [hidden]
  Linear qkv;                                // [(heads + 2 kv_heads) head_dim, hidden]
  at::Tensor q_norm, k_norm;                 // [head_dim], or the projection's width
  Linear output;                             // [hidden, heads * head_dim]
  Linear gate_up;                            // [2 * intermediate, hidden], gate first
  Linear down;                               // [hidden, intermediate]
  ExpertLinears experts;                     // of a sparse layer, instead of gate_up and down
  std::map<std::string, at::Tensor> others;  // further weights of an architecture, by name
};

LayerWeights layer_weights(const ParameterStore& store, const ModelShape& shape, std::size_t layer);

// Attention itself: queries, keys and values of the new tokens -> their mixtures. Scoring reads the
// packed batch; sampling reads the cache, which already holds the new keys and values.
using Attend =
    std::function<at::Tensor(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v)>;

struct LayerInputs {
  const ModelShape& shape;
  const LayerShape& layer;
  const RopeTable& rope;
  const at::Tensor& positions;  // int32 [tokens]
  const Attend& attend;
  const CacheTarget* cache;  // destination of keys and values when sampling, or null
};

// x: [tokens, hidden]. The results still have to be multiplied by the last matrix.
Product self_attention(const at::Tensor& x, const LayerWeights& w, QkNorm norm,
                       const LayerInputs& in);
Product gated_unit(const at::Tensor& x, const LayerWeights& w);

}  // namespace antisd::inline model
