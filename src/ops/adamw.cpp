#include "ops/adamw.h"

#include <array>

#include "core/check.h"
#include "ops/backend.h"
#include "ops/cpu_adamw.h"

#ifdef ANTISD_CUDA
#include "ops/kernels/adamw.h"
#endif

namespace antisd::inline ops {
namespace {

bool is_bf16(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBFloat16;
}

void check_tensors(const AdamWTensors& t) {
  const at::Tensor& master = t.master.defined() ? t.master : t.weight;
  for (const at::Tensor* tensor : {&t.weight, &master, &t.gradient, &t.first, &t.second}) {
    ANTISD_CHECK(tensor->is_contiguous() && tensor->device() == t.weight.device());
    ANTISD_CHECK_EQ(tensor->numel(), t.weight.numel());
  }
  for (const at::Tensor* tensor : {&master, &t.first, &t.second})
    ANTISD_CHECK(tensor->scalar_type() == at::kFloat);
  const auto takes = [&](const at::Tensor& tensor) {
    return tensor.scalar_type() == at::kFloat || is_bf16(tensor) ||
           (tensor.is_cuda() && tensor.scalar_type() == at::kHalf);
  };
  ANTISD_CHECK(takes(t.weight) && takes(t.gradient));
  ANTISD_CHECK((t.weight.scalar_type() != at::kFloat) == t.master.defined());
}

void step_on_cpu(const AdamWTensors& t, float* master, const AdamWFactors& factors) {
  auto* first = t.first.mutable_data_ptr<float>();
  auto* second = t.second.mutable_data_ptr<float>();
  auto* weight = static_cast<std::uint16_t*>(t.weight.mutable_data_ptr());
  const void* gradient = t.gradient.const_data_ptr();
  const std::int64_t count = t.weight.numel(), blocks = (count + kUpdateBlock - 1) / kUpdateBlock;
  at::parallel_for(0, blocks, 4, [&](std::int64_t begin, std::int64_t end) {
    std::array<float, kUpdateBlock> widened;
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t at = block * kUpdateBlock, size = std::min(kUpdateBlock, count - at);
      const float* part = static_cast<const float*>(gradient) + at;
      if (is_bf16(t.gradient)) {
        cpu_widen(static_cast<const std::uint16_t*>(gradient) + at, size, widened.data());
        part = widened.data();
      }
      cpu_adamw(master + at, part, first + at, second + at, size, factors);
      if (t.master.defined()) cpu_narrow(master + at, size, weight + at);
    }
  });
}

}  // namespace

AdamWFactors adamw_factors(const AdamWSettings& s, std::int64_t step, double gradient_scale) {
  ANTISD_CHECK_LE(1, step);
  const auto t = static_cast<double>(step);
  const double correction1 = 1 - std::pow(s.beta1, t), correction2 = 1 - std::pow(s.beta2, t);
  return {.gradient_scale = static_cast<float>(gradient_scale),
          .first_rate = static_cast<float>(1 - s.beta1),
          .second_decay = static_cast<float>(s.beta2),
          .second_rate = static_cast<float>(1 - s.beta2),
          .inverse_root_correction = static_cast<float>(1 / std::sqrt(correction2)),
          .eps = static_cast<float>(s.eps),
          .step_size = static_cast<float>(s.lr / correction1),
          .weight_decay = static_cast<float>(s.lr * s.weight_decay)};
}

void adamw_step(const AdamWTensors& t, const AdamWFactors& factors) {
  check_tensors(t);
  float* master = (t.master.defined() ? t.master : t.weight).mutable_data_ptr<float>();
#ifdef ANTISD_CUDA
  if (t.weight.is_cuda()) {
    launch_adamw(element_type(t.weight), t.weight.mutable_data_ptr(), master,
                 element_type(t.gradient), t.gradient.const_data_ptr(),
                 t.first.mutable_data_ptr<float>(), t.second.mutable_data_ptr<float>(),
                 t.weight.numel(), factors, current_stream(t.weight));
    return;
  }
#endif
  ANTISD_CHECK(t.weight.is_cpu());
  step_on_cpu(t, master, factors);
}

}  // namespace antisd::inline ops
