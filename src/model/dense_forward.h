// All layers of a dense fp32 model on a CPU without gradients: the maths of layer.h on panels
// (ops/panels.h), for architectures with a PanelForm. A thread takes a run of tokens through
// everything between two attentions while it is in the cache. Inside a parallel region it runs on
// the calling thread.
#pragma once

#include <functional>

#include "model/causal_lm.h"

namespace antisd::inline model {

// Whether the model qualifies.
bool suits_dense_forward(const CausalLm& model);

struct DenseTokens {
  std::int64_t count = 0;
  const std::int64_t* ids = nullptr;
  const std::int32_t* positions = nullptr;
};

// The attention of one layer: [tokens, heads, head_dim] each -> [tokens, heads, head_dim], or
// nothing if the rest is not needed: the pass then ends there and returns nothing.
using DenseAttend = std::function<at::Tensor(std::size_t layer, const at::Tensor& q,
                                             const at::Tensor& k, const at::Tensor& v)>;

// Hidden states [tokens, hidden], after the last norm. The caller checks ids and positions.
at::Tensor dense_forward(const CausalLm& model, const DenseTokens& tokens,
                         const DenseAttend& attend);

}  // namespace antisd::inline model
