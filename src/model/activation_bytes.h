// Bytes per token that passes over a layer hold: what the operations of layer.h, residual_stream.h
// and ops/ allocate and save, without rounding up.
//
//   const LayerActivations bytes = layer_activations(shape, shape.layers[0], at::kCUDA, dtype);
//   const double saved = tokens * (bytes.kept - bytes.input);  // by recomputing the layer
#pragma once

#include <ATen/core/Tensor.h>

#include "model/model_shape.h"

namespace antisd::inline model {

struct LayerActivations {
  // Until the layer's backward pass: where that recomputes the layer (its input and attention's
  // result), and where it does not.
  double input = 0, kept = 0;
  // At the moment of the layer's backward pass that needs most, what is there beside `kept`.
  double gradients = 0;
  // The same in attention's backward pass by cuDNN's ragged kernels, but for their workspace
  // (most_run_bytes); 0 where they are not used.
  double ragged_gradients = 0;
  double inference = 0;  // the most that a pass without gradients holds at a time
};

LayerActivations layer_activations(const ModelShape& shape, const LayerShape& layer,
                                   at::Device device, at::ScalarType dtype);

}  // namespace antisd::inline model
