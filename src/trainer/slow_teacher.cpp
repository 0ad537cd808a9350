#include "trainer/slow_teacher.h"

#include <ATen/ATen.h>

namespace antisd::inline trainer {

SlowTeacher::SlowTeacher(const CausalLm& student)
    : average_(student.shape(), student.device(), at::kFloat) {
  if (student.dtype() != at::kFloat)
    rounded_.emplace(student.shape(), student.device(), student.dtype());
  const at::NoGradGuard no_grad;
  student.make_passes(1, [&] {
    for (const ParameterBlock& block : student.parameters().blocks()) {
      const BlockInUse here(student, block);
      for (const Parameter& own : student.parameters().of(block))
        average_.parameters().at(own.name()).copy_from(own);
    }
  });
  refresh();
}

void SlowTeacher::follow(const CausalLm& student, const AdamW& optimizer, double rate) {
  const at::NoGradGuard no_grad;
  const ParameterStore& parameters = student.parameters();
  const auto follow_block = [&](const ParameterBlock& block) {
    const at::Tensor masters = optimizer.whole(block, &ParameterBlock::masters);
    const BlockInUse here(student, block);
    for (const Parameter& own : parameters.of(block)) {
      if (own.quantized.defined()) continue;  // never changes
      const bool has_master = masters.defined() && own.spec.trainable;
      at::Tensor& average = average_.parameters().at(own.name()).value;
      const at::Tensor exact =
          has_master ? masters.narrow(0, parameters.place_in_block(own), own.spec.count())
                           .view(own.spec.sizes)
                           .to(average.device())  // they may lie on the host
                     : own.value.detach();
      // Uninitialised weights may be NaN, which a factor of 0 does not remove.
      rate == 1 ? average.copy_(exact) : average.lerp_(exact, rate);
    }
  };
  student.make_passes(1, [&] {
    for (const ParameterBlock& block : parameters.blocks())
      follow_block(block);
  });
  refresh();
}

void SlowTeacher::refresh() {
  if (!rounded_) return;
  const at::NoGradGuard no_grad;
  for (Parameter& rounded : rounded_->parameters())
    rounded.copy_from(average_.parameters().at(rounded.name()));
}

}  // namespace antisd::inline trainer
