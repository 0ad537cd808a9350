#include "ops/head_logits.h"

namespace antisd::inline ops {

at::Tensor head_logits(const at::Tensor& hidden, const at::Tensor& head) {
  if (hidden.scalar_type() == at::kFloat) return at::mm(hidden, head.t());
  return at::mm(hidden, head.t(), at::kFloat);
}

}  // namespace antisd::inline ops
