#include "ops/grouped_linear.h"

#include "core/check.h"
#include "ops/backend.h"
#include "ops/products.h"

#ifdef ANTISD_CUDA
#include "ops/kernels/grouped_product.h"
#endif

namespace antisd::inline ops {
namespace {

at::Tensor grouped_linear_on_cpu(const at::Tensor& x, const at::Tensor& w, const at::Tensor& ends) {
  std::vector<at::Tensor> parts;
  std::int64_t begin = 0;
  for (std::int64_t expert = 0; expert < w.size(0); ++expert) {
    const std::int64_t end = ends.const_data_ptr<std::int32_t>()[expert];
    if (end > begin)
      parts.push_back(antisd::linear(x.narrow(0, begin, end - begin), w.select(0, expert), {}));
    begin = end;
  }
  return parts.empty() ? at::zeros({0, w.size(1)}, x.options()) : at::cat(parts);
}

#ifdef ANTISD_CUDA
GroupedShape grouped_shape(const at::Tensor& rows, at::IntArrayRef weight) {
  return {static_cast<int>(rows.size(0)), static_cast<int>(weight[0]), static_cast<int>(weight[2]),
          static_cast<int>(weight[1])};
}

GroupedCode code_for(const at::Tensor& rows, const at::Tensor& w) {
  return choose_grouped_code(compute_capability_major(rows), rows.scalar_type(), w.size(2),
                             w.size(1));
}

at::Tensor own_input_gradient(const at::Tensor& dy, const at::Tensor& w, const at::Tensor& ends) {
  const GroupedShape shape = grouped_shape(dy, w.sizes());
  at::Tensor dx = at::empty({shape.rows, shape.in}, dy.options());
  launch_grouped_input_gradient(element_type(dy), shape, dy.const_data_ptr(), w.const_data_ptr(),
                                ends.const_data_ptr<std::int32_t>(), dx.mutable_data_ptr(),
                                current_stream(dy));
  return dx;
}

struct GroupedLinear : torch::autograd::Function<GroupedLinear> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& w, const at::Tensor& ends) {
    context->save_for_backward(
        {w.requires_grad() ? x : at::Tensor(), x.requires_grad() ? w : at::Tensor(), ends});
    context->saved_data["weight"] = w.sizes();
    at::Tensor y = at::empty({x.size(0), w.size(1)}, x.options());
    launch_grouped_product(element_type(x), grouped_shape(x, w.sizes()), x.const_data_ptr(),
                           w.const_data_ptr(), ends.const_data_ptr<std::int32_t>(),
                           y.mutable_data_ptr(), current_stream(x));
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &w = saved[1];
    const auto* ends = saved[2].const_data_ptr<std::int32_t>();
    const std::vector<std::int64_t> sizes = context->saved_data["weight"].toIntVector();
    const at::Tensor dy = gradients[0].contiguous();
    const GroupedShape shape = grouped_shape(dy, sizes);
    at::Tensor dx, dw;
    if (context->needs_input_grad(0)) dx = own_input_gradient(dy, w, saved[2]);
    if (context->needs_input_grad(1)) {
      dw = at::empty(sizes, dy.options());
      launch_grouped_weight_gradient(element_type(dy), shape, dy.const_data_ptr(),
                                     x.const_data_ptr(), ends, dw.mutable_data_ptr(),
                                     current_stream(dy));
    }
    return {dx, dw, at::Tensor()};
  }
};
#endif

}  // namespace

GroupedCode choose_grouped_code(int major, at::ScalarType dtype, std::int64_t in,
                                std::int64_t out) {
  const bool torch_suits = (major == 9 || major == 10) && dtype == at::kBFloat16 && in % 8 == 0 &&
                           out % 8 == 0;  // 8 elements are 16 bytes
  return torch_suits ? GroupedCode::kTorch : GroupedCode::kOwn;
}

at::Tensor grouped_linear(const at::Tensor& x, const at::Tensor& w, const at::Tensor& ends,
                          [[maybe_unused]] GroupedCode code) {
  ANTISD_CHECK(x.dim() == 2 && w.dim() == 3 && x.is_contiguous() && w.is_contiguous());
  ANTISD_CHECK_EQ(x.size(1), w.size(2));
  ANTISD_CHECK_EQ(ends.numel(), w.size(0));
  ANTISD_CHECK(ends.scalar_type() == at::kInt && ends.is_contiguous());
#ifdef ANTISD_CUDA
  if (x.is_cuda()) {
    if (code == GroupedCode::kChosen) code = code_for(x, w);
    if (code == GroupedCode::kTorch) return at::_grouped_mm(x, w.transpose(-2, -1), ends);
    ANTISD_CHECK(x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf);
    ANTISD_CHECK(w.scalar_type() == x.scalar_type());
    return GroupedLinear::apply(x, w, ends);
  }
#endif
  return grouped_linear_on_cpu(x, w, ends);
}

at::Tensor grouped_input_gradient(const at::Tensor& dy, const at::Tensor& w,
                                  [[maybe_unused]] const at::Tensor& ends) {
  ANTISD_CHECK(dy.is_cuda() && dy.is_contiguous() && w.is_contiguous());
#ifdef ANTISD_CUDA
  return code_for(dy, w) == GroupedCode::kTorch ? at::_grouped_mm(dy, w, ends)
                                                : own_input_gradient(dy, w, ends);
#else
  return {};
#endif
}

}  // namespace antisd::inline ops
