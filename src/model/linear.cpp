#include "model/linear.h"

#include "ops/experts.h"
#include "ops/products.h"
#include "ops/quantized_linear.h"

namespace antisd::inline model {

at::Tensor Product::value() const {
  return linear.defined() ? apply(linear, x) : x;
}

at::Tensor apply(const Linear& linear, const at::Tensor& x) {
  const at::Tensor y = linear.quantized.defined()
                           ? quantized_linear(x, linear.quantized, linear.bias)
                           : antisd::linear(x, linear.weight, linear.bias);
  return linear.adapter ? add_lora(y, x, *linear.adapter, LoraSum::kInPlace) : y;
}

at::Tensor apply(const ExpertLinears& experts, const at::Tensor& x, std::int64_t experts_per_token,
                 bool normalise) {
  return antisd::experts(x,
                         {experts.router.weight, experts.gate_up.weight, experts.down.weight,
                          experts.gate_up.quantized, experts.down.quantized,
                          experts.gate_up.adapter.get(), experts.down.adapter.get()},
                         experts_per_token, normalise);
}

}  // namespace antisd::inline model
