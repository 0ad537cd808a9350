#include "ops/quantized_linear.h"

#include <optional>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "ops/backend.h"
#include "ops/grouped_linear.h"
#include "ops/products.h"

#ifdef ANTISD_CUDA
#include "ops/kernels/quantized_product.h"
#endif

namespace antisd::inline ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

#ifdef ANTISD_CUDA
// Whether one kernel computes the product from the codes.
bool suits_fused(const at::Tensor& x, const QuantizedWeight& weight) {
  return x.is_cuda() && x.scalar_type() != at::kFloat && x.size(0) <= kFusedRows &&
         weight.columns % kFusedColumns == 0 && x.is_contiguous() &&
         reinterpret_cast<std::uintptr_t>(x.const_data_ptr()) % 16 == 0;
}

// Into y, of x's type, or an fp32 stream that begins as `residual`.
void fused_product(const at::Tensor& x, const QuantizedWeight& weight, const at::Tensor& residual,
                   const at::Tensor& y) {
  launch_quantized_product(
      {.kind = weight.kind(),
       .type = element_type(x),
       .x = x.const_data_ptr(),
       .rows = x.size(0),
       .columns = weight.columns,
       .outputs = weight.codes.size(0),
       .codes = weight.codes.const_data_ptr(),
       .scales = weight.scales.const_data_ptr<float>(),
       .row_bytes = weight.codes.size(1),
       .residual = residual.defined() ? residual.const_data_ptr<float>() : nullptr,
       .y = y.mutable_data_ptr()},
      current_stream(x));
}
#endif

void save_quantized(AutogradContext* context, const QuantizedWeight& weight,
                    const at::Tensor& ends = {}) {
  context->save_for_backward({weight.codes, weight.scales, ends});
  context->saved_data["columns"] = weight.columns;
}

QuantizedWeight saved_quantized(AutogradContext* context, const variable_list& saved) {
  return {saved[0], saved[1], context->saved_data["columns"].toInt()};
}

struct QuantizedLinear : torch::autograd::Function<QuantizedLinear> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const QuantizedWeight& weight, const std::optional<at::Tensor>& bias) {
    save_quantized(context, weight);
    context->saved_data["bias"] = bias.has_value();
    at::Tensor y = quantized_product(x, weight, {});
    return bias ? y.add_(*bias) : y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    variable_list result(3);
    if (context->needs_input_grad(0))
      result[0] = quantized_product_gradient(gradients[0], saved_quantized(context, saved));
    if (context->saved_data["bias"].toBool() && context->needs_input_grad(1))
      result[2] = gradients[0].sum(0);
    return result;
  }
};

struct QuantizedGroupedLinear : torch::autograd::Function<QuantizedGroupedLinear> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const QuantizedWeight& weight, const at::Tensor& ends) {
    save_quantized(context, weight, ends);
    return grouped_linear(x, dequantize(weight, x.scalar_type()), ends);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor dy = gradients[0].contiguous();
    const at::Tensor weight = dequantize(saved_quantized(context, saved), dy.scalar_type());
    return {grouped_input_gradient(dy, weight, saved[2]), {}, {}};
  }
};

}  // namespace

at::Tensor quantized_product(const at::Tensor& x, const QuantizedWeight& weight,
                             const at::Tensor& residual) {
#ifdef ANTISD_CUDA
  if (suits_fused(x, weight) && (!residual.defined() || residual.is_contiguous())) {
    const auto options = residual.defined() ? residual.options() : x.options();
    at::Tensor y = at::empty({x.size(0), weight.codes.size(0)}, options);
    fused_product(x, weight, residual, y);
    return y;
  }
#endif
  const at::Tensor dense = dequantize(weight, x.scalar_type());
  if (!residual.defined() || x.scalar_type() == at::kFloat) return product_nt(x, dense, residual);
  return at::addmm(residual, x, dense.t(), at::kFloat);
}

void add_quantized_product_(at::Tensor stream, const at::Tensor& x, const QuantizedWeight& weight) {
#ifdef ANTISD_CUDA
  if (suits_fused(x, weight) && stream.is_contiguous())
    return fused_product(x, weight, stream, stream);
#endif
  if (x.scalar_type() == at::kFloat) {
    stream.copy_(quantized_product(x, weight, stream));
  } else {
    at::addmm_out(stream, stream, x, dequantize(weight, x.scalar_type()).t(), at::kFloat);
  }
}

at::Tensor quantized_product_gradient(const at::Tensor& dy, const QuantizedWeight& weight) {
  return product_nn(dy, dequantize(weight, dy.scalar_type()));
}

at::Tensor quantized_linear(const at::Tensor& x, const QuantizedWeight& weight,
                            const at::Tensor& bias) {
  return QuantizedLinear::apply(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
}

at::Tensor quantized_grouped_linear(const at::Tensor& x, const QuantizedWeight& weight,
                                    const at::Tensor& ends) {
  if (x.is_cuda()) return QuantizedGroupedLinear::apply(x, weight, ends);
  std::vector<at::Tensor> parts;  // a CPU converts the weights of one expert at a time
  std::int64_t begin = 0;
  for (std::int64_t expert = 0; expert < ends.size(0); ++expert) {
    const std::int64_t end = ends.const_data_ptr<std::int32_t>()[expert];
    if (end > begin)
      parts.push_back(quantized_linear(x.narrow(0, begin, end - begin), weight.select(expert), {}));
    begin = end;
  }
  return parts.empty() ? at::zeros({0, weight.codes.size(1)}, x.options()) : at::cat(parts);
}

}  // namespace antisd::inline ops
