#include "ops/rms_norm.h"

#include "core/check.h"
#include "ops/backend.h"
#include "ops/simd.h"

#ifdef ANTISD_CUDA
#include "ops/kernels/rms_norm.h"
#include "ops/kernels/wide_rms_norm.h"
#endif

namespace antisd::inline ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

ANTISD_SIMD_CLONES float normalise_row(const float* x, const float* weight, std::int64_t width,
                                       float eps, float* y) {
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t i = 0; i < width; ++i)
    squares += x[i] * x[i];
  const float inverse = 1.0f / std::sqrt(squares / static_cast<float>(width) + eps);
#pragma omp simd
  for (std::int64_t i = 0; i < width; ++i)
    y[i] = x[i] * inverse * weight[i];
  return inverse;
}

// With n = x r, r = inverse rms: dx = r (dy w - n mean(dy w n)), dw += dy n.
ANTISD_SIMD_CLONES void row_gradient(const float* dy, const float* x, const float* weight,
                                     float inverse, std::int64_t width, float* dx, float* dweight) {
  float product = 0;
#pragma omp simd reduction(+ : product)
  for (std::int64_t i = 0; i < width; ++i)
    product += dy[i] * weight[i] * x[i];
  const float mean = product * inverse * inverse / static_cast<float>(width);
#pragma omp simd
  for (std::int64_t i = 0; i < width; ++i) {
    dweight[i] += dy[i] * x[i] * inverse;
    dx[i] = inverse * (dy[i] * weight[i] - x[i] * mean);
  }
}

constexpr std::int64_t kRowsPerTask = 64;

// The weight's gradient is summed over fixed runs of rows, then over the runs in order: the same
// bits for any number of threads.
at::Tensor backward_on_cpu(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                           const at::Tensor& inverse_rms, const at::Tensor& dx) {
  const std::int64_t rows = x.size(0), width = x.size(1);
  constexpr std::int64_t kRowsPerSum = 256;
  const std::int64_t runs = (rows + kRowsPerSum - 1) / kRowsPerSum;
  at::Tensor partial = at::zeros({std::max<std::int64_t>(runs, 1), width}, at::kFloat);
  at::parallel_for(0, runs, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t run = begin; run < end; ++run) {
      float* sums = partial.data_ptr<float>() + run * width;
      for (std::int64_t row = run * kRowsPerSum; row < std::min(rows, (run + 1) * kRowsPerSum);
           ++row) {
        row_gradient(dy.const_data_ptr<float>() + row * dy.stride(0),
                     x.const_data_ptr<float>() + row * x.stride(0), weight.const_data_ptr<float>(),
                     inverse_rms.const_data_ptr<float>()[row], width,
                     dx.data_ptr<float>() + row * dx.stride(0), sums);
      }
    }
  });
  return partial.sum(0);
}

struct RmsNorm : torch::autograd::Function<RmsNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            double eps) {
    const at::Tensor rows = x.reshape({-1, x.size(-1)});
    at::Tensor y = at::empty(rows.sizes(), weight.options());
    const at::Tensor inverse_rms = rms_norm_forward(rows, weight, eps, y);
    context->save_for_backward({rows, weight, inverse_rms});
    return y.view(x.sizes());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor dy = gradients[0].reshape(saved[0].sizes()).contiguous();
    at::Tensor dx = at::empty(dy.sizes(), saved[0].options());
    const at::Tensor dweight = rms_norm_backward(dy, saved[0], saved[1], saved[2], dx);
    return {dx.view(gradients[0].sizes()), dweight.to(saved[1].scalar_type()), at::Tensor()};
  }
};

// Whether an fp32 stream is normed into the weight's 16 bits in one pass.
bool suits_wide_norm([[maybe_unused]] const at::Tensor& x,
                     [[maybe_unused]] const at::Tensor& weight) {
#ifdef ANTISD_CUDA
  return x.is_cuda() && x.scalar_type() == at::kFloat && weight.scalar_type() != at::kFloat &&
         x.dim() == 2 && x.is_contiguous() && x.size(1) % 8 == 0 && x.size(1) <= kWidestStream;
#else
  return false;
#endif
}

at::Tensor narrow_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                           const at::Tensor& inverse_rms, const at::Tensor& dx) {
#ifdef ANTISD_CUDA
  if (x.is_cuda()) {
    const auto fp32 = x.options().dtype(at::kFloat);
    at::Tensor dweight = at::zeros({x.size(1)}, fp32);
    const at::Tensor workspace = at::empty({kRmsNormBackwardBlocks, x.size(1)}, fp32);
    launch_rms_norm_backward(element_type(x), dy.const_data_ptr(), dy.stride(0), x.const_data_ptr(),
                             x.stride(0), weight.const_data_ptr(),
                             inverse_rms.const_data_ptr<float>(), x.size(0), x.size(1),
                             dx.mutable_data_ptr(), dx.stride(0), dweight.mutable_data_ptr<float>(),
                             workspace.mutable_data_ptr<float>(), current_stream(x));
    return dweight;
  }
#endif
  return backward_on_cpu(dy, x, weight, inverse_rms, dx);
}

#ifdef ANTISD_CUDA
at::Tensor wide_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                         const at::Tensor& inverse_rms, const at::Tensor& dx,
                         const at::Tensor& behind, const at::Tensor& rounded) {
  ANTISD_CHECK(dy.is_contiguous() && dx.is_contiguous());
  if (x.size(0) == 0) return at::zeros({x.size(1)}, x.options());
  at::Tensor dweight = at::empty({x.size(1)}, x.options());
  const at::Tensor workspace = at::empty({kWideNormBlocks, x.size(1)}, x.options());
  launch_wide_rms_norm_backward(
      element_type(weight), dy.const_data_ptr(), x.const_data_ptr<float>(), weight.const_data_ptr(),
      inverse_rms.const_data_ptr<float>(),
      behind.defined() ? behind.const_data_ptr<float>() : nullptr, x.size(0), x.size(1),
      dx.mutable_data_ptr<float>(), rounded.defined() ? rounded.mutable_data_ptr() : nullptr,
      dweight.mutable_data_ptr<float>(), workspace.mutable_data_ptr<float>(), current_stream(x));
  return dweight;
}
#endif

}  // namespace

at::Tensor rms_norm_forward(const at::Tensor& x, const at::Tensor& weight, double eps,
                            const at::Tensor& y) {
  ANTISD_CHECK_EQ(x.dim(), 2);
  ANTISD_CHECK_EQ(weight.numel(), x.size(1));
  ANTISD_CHECK(x.stride(1) == 1 && y.stride(1) == 1 && weight.is_contiguous());
  at::Tensor inverse_rms = at::empty({x.size(0)}, x.options().dtype(at::kFloat));
#ifdef ANTISD_CUDA
  if (suits_wide_norm(x, weight)) {
    ANTISD_CHECK(y.is_contiguous());
    launch_wide_rms_norm(element_type(weight), x.const_data_ptr<float>(), weight.const_data_ptr(),
                         eps, x.size(0), x.size(1), y.mutable_data_ptr(),
                         inverse_rms.mutable_data_ptr<float>(), current_stream(x));
    return inverse_rms;
  }
  if (x.is_cuda()) {
    launch_rms_norm(element_type(x), x.const_data_ptr(), x.stride(0), weight.const_data_ptr(), eps,
                    x.size(0), x.size(1), y.mutable_data_ptr(), y.stride(0),
                    inverse_rms.mutable_data_ptr<float>(), current_stream(x));
    return inverse_rms;
  }
#endif
  ANTISD_CHECK(x.scalar_type() == at::kFloat);
  at::parallel_for(0, x.size(0), kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      inverse_rms.data_ptr<float>()[row] = normalise_row(
          x.const_data_ptr<float>() + row * x.stride(0), weight.const_data_ptr<float>(), x.size(1),
          static_cast<float>(eps), y.data_ptr<float>() + row * y.stride(0));
    }
  });
  return inverse_rms;
}

at::Tensor rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& inverse_rms, const at::Tensor& dx,
                             const at::Tensor& behind, const at::Tensor& rounded) {
  ANTISD_CHECK(dy.stride(1) == 1 && x.stride(1) == 1 && dx.stride(1) == 1);
  for (const at::Tensor* tensor : {&behind, &rounded})
    ANTISD_CHECK(!tensor->defined() || (tensor->is_contiguous() && tensor->sizes() == dx.sizes()));
#ifdef ANTISD_CUDA
  if (suits_wide_norm(x, weight))
    return wide_backward(dy, x, weight, inverse_rms, dx, behind, rounded);
#endif
  at::Tensor dweight = narrow_backward(dy, x, weight, inverse_rms, dx);
  if (behind.defined()) at::Tensor(dx).add_(behind);
  if (rounded.defined()) at::Tensor(rounded).copy_(dx);
  return dweight;
}

bool takes_stream(const at::Tensor& x, const at::Tensor& weight) {
  return x.scalar_type() == weight.scalar_type() || suits_wide_norm(x, weight);
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  if (!takes_stream(x, weight))  // a shape that no large model has
    return RmsNorm::apply(x, weight.to(x.scalar_type()), eps).to(weight.scalar_type());
  return RmsNorm::apply(x, weight, eps);
}

}  // namespace antisd::inline ops
