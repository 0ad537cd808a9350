#include "ops/expert_rows.h"

#include "core/check.h"
#include "ops/backend.h"

#ifdef ANTISD_CUDA
#include "ops/kernels/expert_rows.h"
#endif

namespace antisd::inline ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor spread(const at::Tensor& x, const at::Tensor& places) {
  const std::int64_t tokens = places.size(0), k = places.size(1), width = x.size(1);
  at::Tensor sorted = at::empty({tokens * k, width}, x.options());
#ifdef ANTISD_CUDA
  if (x.is_cuda()) {
    launch_spread_rows(element_type(x), x.const_data_ptr(), places.const_data_ptr<std::int64_t>(),
                       tokens, static_cast<int>(k), width, sorted.mutable_data_ptr(),
                       current_stream(x));
    return sorted;
  }
#endif
  for (std::int64_t j = 0; j < k; ++j)
    sorted.index_copy_(0, places.select(1, j), x);
  return sorted;
}

// Undefined weights count as 1.
at::Tensor combine(const at::Tensor& sorted, const at::Tensor& places, const at::Tensor& weights) {
  const std::int64_t tokens = places.size(0), k = places.size(1), width = sorted.size(1);
#ifdef ANTISD_CUDA
  if (sorted.is_cuda()) {
    at::Tensor y = at::empty({tokens, width}, sorted.options());
    launch_combine_rows(element_type(sorted), sorted.const_data_ptr(),
                        places.const_data_ptr<std::int64_t>(),
                        weights.defined() ? weights.const_data_ptr<float>() : nullptr, tokens,
                        static_cast<int>(k), width, y.mutable_data_ptr(), current_stream(sorted));
    return y;
  }
#endif
  at::Tensor sum = at::zeros({tokens, width}, sorted.options());
  for (std::int64_t j = 0; j < k; ++j) {
    const at::Tensor rows = sorted.index_select(0, places.select(1, j));
    weights.defined() ? sum.addcmul_(rows, weights.select(1, j).unsqueeze(1)) : sum.add_(rows);
  }
  return sum;
}

struct SpreadRows : torch::autograd::Function<SpreadRows> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& places) {
    context->save_for_backward({places});
    return spread(x, places);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {combine(gradients[0].contiguous(), context->get_saved_variables()[0], {}),
            at::Tensor()};
  }
};

struct CombineRows : torch::autograd::Function<CombineRows> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& sorted,
                            const at::Tensor& places, const at::Tensor& weights) {
    context->save_for_backward({sorted, places, weights});
    return combine(sorted, places, weights);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &sorted = saved[0], &places = saved[1], &weights = saved[2];
    const at::Tensor dy = gradients[0].contiguous();
    at::Tensor dsorted = at::empty_like(sorted), dweights = at::empty_like(weights);
#ifdef ANTISD_CUDA
    if (dy.is_cuda()) {
      launch_combine_rows_backward(
          element_type(dy), dy.const_data_ptr(), sorted.const_data_ptr(),
          places.const_data_ptr<std::int64_t>(), weights.const_data_ptr<float>(), places.size(0),
          static_cast<int>(places.size(1)), sorted.size(1), dsorted.mutable_data_ptr(),
          dweights.mutable_data_ptr<float>(), current_stream(dy));
      return {dsorted, at::Tensor(), dweights};
    }
#endif
    for (std::int64_t j = 0; j < places.size(1); ++j) {
      const at::Tensor place = places.select(1, j);
      dsorted.index_copy_(0, place, dy * weights.select(1, j).unsqueeze(1));
      dweights.select(1, j).copy_((dy * sorted.index_select(0, place)).sum(1));
    }
    return {dsorted, at::Tensor(), dweights};
  }
};

}  // namespace

at::Tensor spread_rows(const at::Tensor& x, const at::Tensor& places) {
  ANTISD_CHECK(x.is_contiguous() && places.is_contiguous());
  ANTISD_CHECK_EQ(x.size(0), places.size(0));
  return SpreadRows::apply(x, places);
}

at::Tensor combine_rows(const at::Tensor& sorted, const at::Tensor& places,
                        const at::Tensor& weights) {
  ANTISD_CHECK(sorted.is_contiguous() && places.is_contiguous() && weights.is_contiguous());
  ANTISD_CHECK_EQ(sorted.size(0), places.numel());
  ANTISD_CHECK(weights.scalar_type() == at::kFloat && weights.sizes() == places.sizes());
  return CombineRows::apply(sorted, places, weights);
}

}  // namespace antisd::inline ops
