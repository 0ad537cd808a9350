#include "ops/optest/op_case.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

namespace antisd::inline ops {
namespace {

// The outputs, then the gradients of their sum with fixed random weights.
Tensors values_and_gradients(const OpFunction& function, const Tensors& inputs) {
  Tensors leaves;
  for (const at::Tensor& input : inputs)
    leaves.push_back(input.detach().clone().requires_grad_(true));
  Tensors results = function(leaves);
  at::Tensor loss = at::zeros({}, at::kDouble);
  std::uint64_t seed = 1;
  for (const at::Tensor& result : results) {
    const at::Tensor weights =
        at::randn(result.sizes(), at::detail::createCPUGenerator(seed++), at::kDouble);
    loss = loss + (result.to(at::kCPU, at::kDouble) * weights).sum();
  }
  torch::autograd::backward({loss}, {});
  for (const at::Tensor& leaf : leaves)
    results.push_back(leaf.grad());
  for (at::Tensor& result : results)
    result = result.detach().to(at::kCPU, at::kDouble);
  return results;
}

}  // namespace

std::string Backend::name() const {
  return fmt::format("{} {}", device.is_cuda() ? "cuda" : "cpu",
                     dtype == at::kFloat  ? "fp32"
                     : dtype == at::kHalf ? "fp16"
                                          : "bf16");
}

double error_of(const OpCase& test, const Backend& backend) {
  Tensors rounded, moved;
  for (const at::Tensor& input : test.inputs) {
    moved.push_back(input.to(backend.dtype).to(backend.device));
    rounded.push_back(
        input.to(backend.dtype).to(at::kDouble));  // the reference gets the same rounded inputs
  }
  const Tensors results = values_and_gradients(test.op, moved);
  const Tensors expected = values_and_gradients(test.reference, rounded);
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double scale = std::max(expected[i].abs().max().item<double>(), 1e-3);
    const double difference = (results[i] - expected[i]).abs().max().item<double>();
    worst =
        std::max(worst, std::isfinite(difference) ? difference / scale / backend.tolerance : 1e9);
  }
  return worst;
}

at::Tensor random(std::vector<std::int64_t> sizes, std::uint64_t seed, double scale) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kDouble) * scale;
}

at::Tensor integers(std::vector<std::int32_t> values, const at::Tensor& like) {
  return at::tensor(at::ArrayRef<std::int32_t>(values), at::kInt).to(like.device());
}

at::Tensor plain_rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return x * (x.square().mean(-1, true) + eps).rsqrt() * weight;
}

}  // namespace antisd::inline ops
