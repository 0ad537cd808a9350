#include "ops/stream_norm.h"

#include <optional>

#include "core/check.h"
#include "ops/products.h"
#include "ops/quantized_linear.h"
#include "ops/rms_norm.h"

namespace antisd::inline ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::optional<at::Tensor> defined_or_none(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

// The weight of a product, in one of its two forms.
struct StreamWeight {
  at::Tensor plain;
  QuantizedWeight quantized;
};

at::Tensor sum_with(const at::Tensor& h, const at::Tensor& x, const StreamWeight& w,
                    const std::optional<at::Tensor>& bias) {
  at::Tensor sum = w.quantized.defined()           ? quantized_product(x, w.quantized, h)
                   : x.scalar_type() == at::kFloat ? product_nt(x, w.plain, h)
                                                   : at::addmm(h, x, w.plain.t(), at::kFloat);
  return bias ? sum.add_(*bias) : sum;
}

// Gradients of x, w and the bias, from the product's gradient in x's precision; w's only if it is
// `trained`.
void set_product_gradients(const at::Tensor& dy, const at::Tensor& x, const StreamWeight& w,
                           bool trained, bool has_bias, at::Tensor* gradients) {
  gradients[0] =
      w.quantized.defined() ? quantized_product_gradient(dy, w.quantized) : product_nn(dy, w.plain);
  if (trained) gradients[1] = product_tn(dy, x);
  if (has_bias) gradients[2] = dy.sum(0);
}

// The backward pass needs only x and w.
struct AddProduct : torch::autograd::Function<AddProduct> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& h, const at::Tensor& x,
                            const std::optional<at::Tensor>& w,
                            const std::optional<at::Tensor>& bias, bool left_out,
                            const QuantizedWeight& quantized) {
    context->save_for_backward({x, w.value_or(at::Tensor()), quantized.codes, quantized.scales});
    context->saved_data["bias"] = bias.has_value();
    return left_out ? h.view_as(h) : sum_with(h, x, {w.value_or(at::Tensor()), quantized}, bias);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    variable_list result(6);
    result[0] = gradients[0];
    set_product_gradients(gradients[0].to(x.scalar_type()), x,
                          {saved[1], {saved[2], saved[3], x.size(1)}},
                          saved[1].defined() && context->needs_input_grad(2),
                          context->saved_data["bias"].toBool(), &result[1]);
    return result;
  }
};

struct AddAndNorm : torch::autograd::Function<AddAndNorm> {
  static variable_list forward(AutogradContext* context, const at::Tensor& h,
                               const std::optional<at::Tensor>& x,
                               const std::optional<at::Tensor>& w,
                               const std::optional<at::Tensor>& bias, const at::Tensor& norm_weight,
                               double eps, const QuantizedWeight& quantized) {
    const at::Tensor plain = w.value_or(at::Tensor());
    const at::Tensor stream = x ? sum_with(h, *x, {plain, quantized}, bias) : h.view_as(h);
    at::Tensor normed = at::empty(stream.sizes(), norm_weight.options());
    const at::Tensor inverse_rms = rms_norm_forward(stream, norm_weight, eps, normed);
    // Without a product the stream is an input, so saving it is free.
    context->save_for_backward({x ? stream : h, norm_weight, inverse_rms, x.value_or(at::Tensor()),
                                plain, quantized.codes, quantized.scales});
    context->saved_data["bias"] = bias.has_value();
    context->set_materialize_grads(false);
    return {stream, normed};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &stream = saved[0], &norm_weight = saved[1], &x = saved[3];
    variable_list result(7);
    at::Tensor rounded;
    if (gradients[1].defined()) {
      result[0] = at::empty_like(stream);
      if (x.defined() && x.scalar_type() != at::kFloat)
        rounded = at::empty(stream.sizes(), x.options());
      const at::Tensor behind = gradients[0].defined() ? gradients[0].contiguous() : at::Tensor();
      result[4] = rms_norm_backward(gradients[1].contiguous(), stream, norm_weight, saved[2],
                                    result[0], behind, rounded)
                      .to(norm_weight.scalar_type());
    } else {
      result[0] = gradients[0];
    }
    if (!result[0].defined() || !x.defined()) return result;
    if (!rounded.defined()) rounded = result[0].to(x.scalar_type());
    set_product_gradients(rounded, x, {saved[4], {saved[5], saved[6], x.size(1)}},
                          saved[4].defined() && context->needs_input_grad(2),
                          context->saved_data["bias"].toBool(), &result[1]);
    return result;
  }
};

}  // namespace

at::Tensor add_product(const at::Tensor& stream, const StreamProduct& product, bool left_out) {
  return AddProduct::apply(stream, product.x, defined_or_none(product.weight),
                           defined_or_none(product.bias), left_out, product.quantized);
}

StreamNorm add_and_norm(const at::Tensor& stream, const StreamProduct& product,
                        const at::Tensor& norm_weight, double eps) {
  ANTISD_CHECK(stream.dim() == 2 && stream.scalar_type() == at::kFloat && stream.is_contiguous());
  if (!takes_stream(stream, norm_weight)) {
    const at::Tensor sum = product.x.defined() ? add_product(stream, product, false) : stream;
    return {sum, rms_norm(sum, norm_weight, eps)};
  }
  const variable_list results =
      AddAndNorm::apply(stream, defined_or_none(product.x), defined_or_none(product.weight),
                        defined_or_none(product.bias), norm_weight, eps, product.quantized);
  return {results[0], results[1]};
}

}  // namespace antisd::inline ops
