#include "ops/products.h"

#include "ops/panels.h"
#include "ops/tile_product.h"

namespace antisd::inline ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kLanes = 16;
constexpr std::int64_t kRun = 256;            // tokens per task, and terms of a sum at a time
constexpr std::int64_t kOutputsPerTask = 48;  // outputs per task of product_tn

bool is_dense(const at::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && x.dim() == 2 && x.size(1) % kLanes == 0;
}

// A dense copy of rows [0, rows) by `columns` columns of `from`.
void pack(const float* from, std::int64_t row, std::int64_t rows, std::int64_t columns, float* to) {
  for (std::int64_t i = 0; i < rows; ++i)
    std::copy_n(from + i * row, columns, to + i * columns);
}

template <typename Body>
void for_each_part(std::int64_t count, std::int64_t part, const Body& body) {
  at::parallel_for(0, (count + part - 1) / part, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      body(i * part, std::min(part, count - i * part));
  });
}

struct Linear : torch::autograd::Function<Linear> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias) {
    context->save_for_backward({x, weight});
    context->saved_data["bias"] = bias.has_value();
    at::Tensor y = product_nt(x, weight, {});
    return bias ? y.add_(*bias) : y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    variable_list result(3);
    if (context->needs_input_grad(0)) result[0] = product_nn(gradients[0], saved[1]);
    if (context->needs_input_grad(1)) result[1] = product_tn(gradients[0], saved[0]);
    if (context->saved_data["bias"].toBool()) result[2] = gradients[0].sum(0);
    return result;
  }
};

}  // namespace

bool suits_tile_products(const at::Tensor& x, const at::Tensor& weight) {
  return is_dense(x) && is_dense(weight);
}

at::Tensor product_nt(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& residual) {
  if (!suits_tile_products(x, weight)) {
    return residual.defined() ? at::addmm(residual, x, weight.t()) : at::mm(x, weight.t());
  }
  const at::Tensor rows = x.contiguous(), w = weight.contiguous();
  const at::Tensor before = residual.defined() ? residual.contiguous() : residual;
  const std::int64_t in = w.size(1), out = w.size(0);
  at::Tensor y = at::empty({x.size(0), out}, x.options());
  const float *from = rows.const_data_ptr<float>(), *factors = w.const_data_ptr<float>();
  float* to = y.data_ptr<float>();
  for_each_part(x.size(0), kRun, [&](std::int64_t token, std::int64_t tokens) {
    panel_row_product(factors, from + token * in, tokens, in, out,
                      before.defined() ? before.const_data_ptr<float>() + token * out : nullptr,
                      to + token * out);
  });
  return y;
}

at::Tensor product_nn(const at::Tensor& dy, const at::Tensor& weight) {
  if (!is_dense(weight) || !dy.is_cpu()) return dy.mm(weight);
  const at::Tensor rows = dy.contiguous(), w = weight.contiguous();
  const std::int64_t in = w.size(1), out = w.size(0);
  at::Tensor dx = at::empty({dy.size(0), in}, dy.options());
  const float *from = rows.const_data_ptr<float>(), *factors = w.const_data_ptr<float>();
  float* to = dx.data_ptr<float>();
  for_each_part(dy.size(0), kRun, [&](std::int64_t token, std::int64_t tokens) {
    alignas(64) float packed[kRun * kLanes];
    for (std::int64_t column = 0; column < in; column += kLanes) {
      for (std::int64_t k = 0; k < out; k += kRun) {
        const std::int64_t count = std::min(kRun, out - k);
        pack(factors + k * in + column, in, count, kLanes, packed);
        tile_product(tokens, kLanes, count, {from + token * out + k, out, 1}, packed, kLanes,
                     to + token * in + column, in, /*add=*/k > 0);
      }
    }
  });
  return dx;
}

at::Tensor product_tn(const at::Tensor& dy, const at::Tensor& x) {
  if (!is_dense(x) || !dy.is_cpu()) return dy.t().mm(x);
  const at::Tensor left = dy.contiguous(), right = x.contiguous();
  const std::int64_t in = x.size(1), out = dy.size(1), all = x.size(0);
  at::Tensor dw = all > 0 ? at::empty({out, in}, x.options()) : at::zeros({out, in}, x.options());
  const float *a = left.const_data_ptr<float>(), *b = right.const_data_ptr<float>();
  float* to = dw.data_ptr<float>();
  for_each_part(out, kOutputsPerTask, [&](std::int64_t row, std::int64_t rows) {
    alignas(64) float packed[kRun * kOutputsPerTask];
    for (std::int64_t token = 0; token < all; token += kRun) {
      const std::int64_t tokens = std::min(kRun, all - token);
      pack(a + token * out + row, out, tokens, rows, packed);
      tile_product(rows, in, tokens, {packed, 1, rows}, b + token * in, in, to + row * in, in,
                   /*add=*/token > 0);
    }
  });
  return dw;
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const auto optional = bias.defined() ? std::optional(bias) : std::nullopt;
  if (!suits_tile_products(x, weight)) return at::linear(x, weight, optional);
  return Linear::apply(x, weight, optional);
}

}  // namespace antisd::inline ops
