// One layer's weights and what its maths is made of. The architectures differ in how they put these
// together; each has a file of its own.
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

// Borrowed from the store: changes of its values are seen here.
struct LayerWeights {
  at::Tensor first_norm, second_norm;        // [hidden]
  Linear qkv;                                // [(heads + 2 kv_heads) head_dim, hidden]
  at::Tensor q_norm, k_norm;                 // [head_dim], or the projection's width
  Linear output;                             // [hidden, heads * head_dim]
  Linear gate_up;                            // [2 * intermediate, hidden], gate first
  Linear down;                               // [hidden, intermediate]
  ExpertLinears experts;                     // of a sparse layer, in place of gate_up and down
  std::map<std::string, at::Tensor> others;  // what an architecture has beside these, by name
};

LayerWeights layer_weights(const ParameterStore& store, std::size_t layer);

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

}  // namespace antisd::inline model
