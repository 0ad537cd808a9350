// The comparisons of antisd-optest: an op against plain tensor arithmetic in double precision,
// values and gradients, on every backend.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "ops/grouped_linear.h"

namespace antisd::inline ops {

using Tensors = std::vector<at::Tensor>;
using OpFunction = std::function<Tensors(const Tensors&)>;

struct OpCase {
  std::string name;
  Tensors inputs;                               // double, on the CPU; each gets a gradient
  OpFunction op;                                // on the backend's device and precision
  OpFunction reference;                         // in double
  std::vector<at::ScalarType> not_on_gpu = {};  // precisions that the GPU path does not support
};

struct Backend {
  at::Device device;
  at::ScalarType dtype;
  double tolerance;  // relative to the largest magnitude of each result
  std::string name() const;
};

std::vector<OpCase> layer_cases();
std::vector<OpCase> attention_cases();
std::vector<OpCase> ragged_attention_cases();
std::vector<OpCase> grouped_cases(GroupedCode code);  // `code` says which GPU code
std::vector<OpCase> quantized_cases();

// The largest error of any result, in units of the tolerance.
double error_of(const OpCase& test, const Backend& backend);

// A seed gives the same numbers, on the CPU in double.
at::Tensor random(std::vector<std::int64_t> sizes, std::uint64_t seed, double scale = 1);
at::Tensor integers(std::vector<std::int32_t> values, const at::Tensor& like);

at::Tensor plain_rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

}  // namespace antisd::inline ops
