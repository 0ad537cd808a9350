// Qwen2 and Qwen2.5: Llama's layer; the biases of queries, keys and values are among the weights.
#include "model/layer.h"

namespace antisd {

at::Tensor qwen2_layer(const at::Tensor& x, const LayerWeights& w, const LayerInputs& in) {
  return llama_layer(x, w, in);
}

}  // namespace antisd
