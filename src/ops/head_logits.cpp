#include "ops/head_logits.h"

#include "ops/products.h"

namespace antisd::inline ops {

at::Tensor head_logits(const at::Tensor& hidden, const at::Tensor& head) {
  if (hidden.scalar_type() == at::kFloat) return product_nt(hidden, head, {});
  return at::mm(hidden, head.t(), at::kFloat);
}

}  // namespace antisd::inline ops
