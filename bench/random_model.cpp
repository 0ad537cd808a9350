#ifdef ANTISD_TORCH

#include "bench/random_model.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace antisd::bench {

CausalLm random_model(const ModelShape& shape, at::Device device, const std::string& dtype) {
  CausalLm model(shape, device, compute_dtype(device, dtype));
  const at::NoGradGuard no_grad;
  for (Parameter& parameter : model.parameters()) {
    if (parameter.spec.kind == ParameterKind::kNorm) {
      parameter.value.fill_(1);
    } else if (parameter.quantized.defined()) {
      parameter.set(at::empty(parameter.spec.sizes, model.embedding().options()).normal_(0, 0.02));
    } else {
      parameter.value.normal_(0, 0.02);
    }
  }
  return model;
}

}  // namespace antisd::bench

#endif
