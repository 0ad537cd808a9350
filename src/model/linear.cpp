#include "model/linear.h"

#include "ops/experts.h"
#include "ops/products.h"

namespace antisd::inline model {

at::Tensor Product::value() const {
  return linear.weight.defined() ? apply(linear, x) : x;
}

at::Tensor apply(const Linear& linear, const at::Tensor& x) {
  return antisd::linear(x, linear.weight, linear.bias);
}

at::Tensor apply(const ExpertLinears& experts, const at::Tensor& x, std::int64_t experts_per_token,
                 bool normalise) {
  return antisd::experts(x, {experts.router.weight, experts.gate_up.weight, experts.down.weight},
                         experts_per_token, normalise);
}

}  // namespace antisd::inline model
