#include "ops/swiglu.h"

#include "core/check.h"
#include "ops/backend.h"
#include "ops/simd.h"

#ifdef ANTISD_CUDA
#include "ops/kernels/swiglu.h"
#endif

namespace antisd::inline ops {

ANTISD_SIMD_CLONES void cpu_swiglu(const float* gate, const float* up, std::int64_t width,
                                   float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < width; ++i)
    y[i] = gate[i] / (1.0f + simd_exp(-gate[i])) * up[i];
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kUnitRowsPerTask = 32;

// d silu(g) / dg = s (1 + g (1 - s)), s = sigmoid(g).
ANTISD_SIMD_CLONES void swiglu_row_gradient(const float* dy, const float* gate, const float* up,
                                            std::int64_t width, float* dgate, float* dup) {
#pragma omp simd
  for (std::int64_t i = 0; i < width; ++i) {
    const float s = 1.0f / (1.0f + simd_exp(-gate[i]));
    dup[i] = dy[i] * gate[i] * s;
    dgate[i] = dy[i] * up[i] * s * (1.0f + gate[i] * (1.0f - s));
  }
}

struct Swiglu : torch::autograd::Function<Swiglu> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate_up) {
    ANTISD_CHECK(gate_up.dim() == 2 && gate_up.is_contiguous());
    const std::int64_t rows = gate_up.size(0), width = gate_up.size(1) / 2;
    context->save_for_backward({gate_up});
    at::Tensor y = at::empty({rows, width}, gate_up.options());
#ifdef ANTISD_CUDA
    if (gate_up.is_cuda()) {
      launch_swiglu(element_type(gate_up), gate_up.const_data_ptr(), rows, width,
                    y.mutable_data_ptr(), current_stream(gate_up));
      return y;
    }
#endif
    const float* input = gate_up.const_data_ptr<float>();
    float* output = y.data_ptr<float>();
    at::parallel_for(0, rows, kUnitRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        cpu_swiglu(input + row * 2 * width, input + row * 2 * width + width, width,
                   output + row * width);
      }
    });
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor gate_up = context->get_saved_variables()[0];
    const at::Tensor dy = gradients[0].contiguous();
    const std::int64_t rows = gate_up.size(0), width = gate_up.size(1) / 2;
    at::Tensor dgate_up = at::empty_like(gate_up);
#ifdef ANTISD_CUDA
    if (gate_up.is_cuda()) {
      launch_swiglu_backward(element_type(gate_up), dy.const_data_ptr(), gate_up.const_data_ptr(),
                             rows, width, dgate_up.mutable_data_ptr(), current_stream(gate_up));
      return {dgate_up};
    }
#endif
    const float* input = gate_up.const_data_ptr<float>();
    const float* gradient = dy.const_data_ptr<float>();
    float* output = dgate_up.data_ptr<float>();
    at::parallel_for(0, rows, kUnitRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t at = row * 2 * width;
        swiglu_row_gradient(gradient + row * width, input + at, input + at + width, width,
                            output + at, output + at + width);
      }
    });
    return {dgate_up};
  }
};

}  // namespace

at::Tensor swiglu(const at::Tensor& gate_up) {
  return Swiglu::apply(gate_up);
}

}  // namespace antisd::inline ops
