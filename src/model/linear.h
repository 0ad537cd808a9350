// A linear map of the model; every product of a forward pass uses one. Layers call apply(); panels
// (dense_forward.cpp) and ops that fuse a product with the next operation (experts, the head's
// scores) take the weights of a Linear.
//
//   const at::Tensor qkv = apply(w.qkv, x);
//   stream.add(Product{mixed, w.output});       // computed when the stream is read
#pragma once

#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>

#include "ops/lora.h"
#include "ops/quantized_weight.h"

namespace antisd::inline model {

struct Linear {
  at::Tensor weight;               // [out, in]; for a layer's experts [experts, out, in]
  at::Tensor bias;                 // [out], or undefined
  QuantizedWeight quantized = {};  // instead of `weight`
  std::shared_ptr<const LoraWeights> adapter = {};  // adds to the product; null: none

  bool defined() const { return weight.defined() || quantized.defined(); }
};

// x weight^T + bias, and what the adapter adds, not yet computed. x: [tokens, in]. Without a weight
// it is x itself.
struct Product {
  at::Tensor x;
  Linear linear;

  at::Tensor value() const;
};

at::Tensor apply(const Linear& linear, const at::Tensor& x);

// Instead of a gated unit: each token is routed to some of these (ops/experts.h).
struct ExpertLinears {
  Linear router, gate_up, down;  // without biases
};

at::Tensor apply(const ExpertLinears& experts, const at::Tensor& x, std::int64_t experts_per_token,
                 bool normalise);

}  // namespace antisd::inline model
