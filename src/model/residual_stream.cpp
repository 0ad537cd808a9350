#include "model/residual_stream.h"

#include "core/check.h"
#include "model/checkpointed.h"
#include "ops/cpu_gated_unit.h"
#include "ops/rms_norm.h"

namespace antisd {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::optional<at::Tensor> optional(const at::Tensor& bias) {
  return bias.defined() ? std::optional(bias) : std::nullopt;
}

// h as it is, with the gradients of h + x w^T + bias, which need x and w alone.
struct WithoutProduct : torch::autograd::Function<WithoutProduct> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& h, const at::Tensor& x,
                            const at::Tensor& w, const std::optional<at::Tensor>& bias) {
    context->save_for_backward({x, w});
    context->saved_data["bias"] = bias.has_value();
    return h.view_as(h);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& dy = gradients[0];
    variable_list result(4);
    result[0] = dy;
    result[1] = dy.mm(saved[1]);
    result[2] = dy.t().mm(saved[0]);
    if (context->saved_data["bias"].toBool()) result[3] = dy.sum(0);
    return result;
  }
};

}  // namespace

bool suits_cpu_linear(const at::Tensor& x, const at::Tensor& bias) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && !bias.defined() &&
         !at::GradMode::is_enabled();
}

at::Tensor Product::value() const {
  if (!weight.defined()) return x;
  if (suits_cpu_linear(x, bias)) return cpu_linear(x.contiguous(), weight, {});
  return at::linear(x, weight, optional(bias));
}

at::Tensor ResidualStream::pending_value() const {
  return product_.x.defined() ? product_.value() : y_;
}

void ResidualStream::add(Product product) {
  value();
  product_ = std::move(product);
}

void ResidualStream::add(at::Tensor y) {
  value();
  y_ = std::move(y);
}

at::Tensor ResidualStream::normed(const at::Tensor& weight, double eps) {
  const at::Tensor y = pending_value();
  product_ = {};
  y_ = at::Tensor();
  if (y.defined()) {
    if (own_ && !at::GradMode::is_enabled()) return add_rms_norm_(x_, y, weight, eps);
    x_ = x_ + y;
    own_ = true;
  }
  return rms_norm(x_, weight, eps);
}

const at::Tensor& ResidualStream::value() {
  if (product_.weight.defined() && is_recomputing()) {
    x_ = WithoutProduct::apply(x_, product_.x, product_.weight, optional(product_.bias));
  } else if (const at::Tensor y = pending_value(); y.defined()) {
    x_ = x_ + y;
    own_ = true;
  }
  product_ = {};
  y_ = at::Tensor();
  return x_;
}

}  // namespace antisd
