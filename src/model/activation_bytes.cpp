#include "model/activation_bytes.h"

#include <algorithm>

#include "ops/attention_choice.h"

namespace antisd::inline model {

LayerActivations layer_activations(const ModelShape& shape, const LayerShape& layer,
                                   at::Device device, at::ScalarType dtype) {
  const auto element = static_cast<double>(c10::elementSize(dtype));
  const bool gpu = device.is_cuda();
  const double hidden = static_cast<double>(shape.hidden), stream = 4 * hidden;  // fp32
  const double queries = static_cast<double>(shape.heads * shape.head_dim);
  const double keys = static_cast<double>(shape.kv_heads * shape.head_dim);
  const double projected = queries + 2 * keys;
  // A GPU copies the values only where sequences share a prompt.
  const double rotated = queries + 2 * keys;
  const double units = static_cast<double>(
      layer.sparse ? shape.experts_per_token * shape.expert_intermediate : shape.intermediate);
  // Rows of the experts' input; those of their output are as many.
  const double routed =
      layer.sparse ? static_cast<double>(shape.experts_per_token * shape.hidden) : 0;
  // Products with frozen experts keep neither their input's rows nor the units that they read.
  const bool frozen = layer.sparse && (shape.base || (shape.lora && !shape.lora->experts));
  const double unit_rows = (frozen ? 2 : 3) * units + (frozen ? 1 : 2) * routed;
  const double router = layer.sparse ? (element + 8) * static_cast<double>(shape.experts) : 0;

  LayerActivations bytes;
  bytes.input = stream + element * queries + 4 * static_cast<double>(shape.heads);
  bytes.kept = bytes.input + stream +  // between the halves
               element * (2 * hidden + projected + rotated + unit_rows) + router;

  // Backward through the gated unit: the stream's gradient, and that of gate and up, while the
  // product's has taken the product's place; or, of experts, that of their output's rows.
  const double of_unit =
      stream + element * (layer.sparse ? std::max(2 * units - routed, routed + hidden) : 2 * units);
  // Backward through attention: all of the unit and the second norm are freed. There are two
  // gradients of the stream, that of attention's result, and those of queries, keys and values. On
  // a GPU queries' are summed in fp32, and keys' and values' are there for every query's head.
  const double freed = stream + element * (hidden + unit_rows) + router;
  const double shared = shape.heads > shape.kv_heads ? 2 * queries : 0;
  const double operands = 2 * stream + element * (queries + projected) - freed;
  const double of_attention = operands + (gpu ? 4 * queries + element * shared : 0);
  bytes.gradients = std::max(of_unit, of_attention);
  // Ragged kernels read copies with spare rows: here of attention's gradient, in a pass without
  // gradients of queries, keys and values.
  const bool ragged = may_be_ragged(device, dtype, shape.head_dim);
  if (ragged) bytes.ragged_gradients = operands + element * queries;

  // Products are added to the stream in place. A half's values are gone before the other's come.
  // Attention reads copies of keys and values where sequences share a prompt.
  bytes.inference =
      stream + element * hidden +
      std::max(element * (projected + rotated + keys + queries + (ragged ? projected : 0)),
               element * (3 * units + 2 * routed + (layer.sparse ? hidden : 0)) + router);
  return bytes;
}

}  // namespace antisd::inline model
