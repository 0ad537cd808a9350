// Qwen2 and Qwen2.5: Llama's layer; the biases of queries, keys and values are among the weights.
#include "model/layer.h"

namespace antisd {

void qwen2_layer(ResidualStream& x, const LayerWeights& w, const LayerInputs& in) {
  llama_layer(x, w, in);
}

}  // namespace antisd
