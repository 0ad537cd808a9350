#include "trainer/slow_teacher.h"

#include <ATen/ATen.h>

namespace antisd::inline trainer {

SlowTeacher::SlowTeacher(const CausalLm& student)
    : average_(student.shape(), student.device(), at::kFloat) {
  if (student.dtype() != at::kFloat)
    rounded_.emplace(student.shape(), student.device(), student.dtype());
  follow(student, /*rate=*/1);
}

void SlowTeacher::follow(const CausalLm& student, double rate) {
  const at::NoGradGuard no_grad;
  for (Parameter& average : average_.parameters()) {
    const at::Tensor& exact = student.parameters().at(average.name()).exact();
    // Uninitialised weights may be NaN, which a factor of 0 does not remove.
    rate == 1 ? average.value.copy_(exact) : average.value.lerp_(exact, rate);
  }
  refresh();
}

void SlowTeacher::refresh() {
  if (!rounded_) return;
  const at::NoGradGuard no_grad;
  for (Parameter& rounded : rounded_->parameters())
    rounded.value.copy_(average_.parameters().at(rounded.name()).value);
}

}  // namespace antisd::inline trainer
