#include "trainer/slow_teacher.h"

#include <ATen/ATen.h>

namespace antisd {

SlowTeacher::SlowTeacher(const CausalLm& student, const AdamW& optimizer)
    : average_(student.shape(), student.device(), at::kFloat) {
  if (student.dtype() != at::kFloat)
    rounded_.emplace(student.shape(), student.device(), student.dtype());
  follow(student, optimizer, /*rate=*/1);
}

void SlowTeacher::follow(const CausalLm& student, const AdamW& optimizer, double rate) {
  const at::NoGradGuard no_grad;
  for (std::size_t p = 0; p < average_.parameters().size(); ++p) {
    const at::Tensor& master = optimizer.state()[p].master;
    const at::Tensor& exact = master.defined() ? master : student.parameters()[p].value;
    at::Tensor& average = average_.parameters()[p].value;
    // Weights that were never set may hold NaN, which no weight of 0 removes.
    rate == 1 ? average.copy_(exact) : average.lerp_(exact, rate);
  }
  refresh();
}

void SlowTeacher::refresh() {
  if (!rounded_) return;
  const at::NoGradGuard no_grad;
  for (std::size_t p = 0; p < average_.parameters().size(); ++p)
    rounded_->parameters()[p].value.copy_(average_.parameters()[p].value);
}

}  // namespace antisd
