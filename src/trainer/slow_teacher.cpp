#include "trainer/slow_teacher.h"

#include <ATen/ATen.h>

namespace antisd::inline trainer {
namespace {

// A model of the student's shape, with the student's own frozen weights, in their precision.
CausalLm beside(const CausalLm& student, at::ScalarType dtype) {
  const ModelShape& shape = student.shape();
  return shape.lora || shape.base ? CausalLm(student, shape.lora, dtype)
                                  : CausalLm(shape, student.device(), dtype);
}

}  // namespace

SlowTeacher::SlowTeacher(const CausalLm& student) : average_(beside(student, at::kFloat)) {
  if (student.dtype() != at::kFloat) rounded_.emplace(beside(student, student.dtype()));
  const at::NoGradGuard no_grad;
  student.make_passes(1, [&] {
    for (const ParameterBlock& block : student.parameters().blocks()) {
      const BlockInUse here(student, block);
      for (const Parameter& own : student.parameters().of(block))
        if (own.spec.trainable) average_.parameters().at(own.name()).value.copy_(own.value);
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
      if (!own.spec.trainable) continue;
      const bool has_master = masters.defined();
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
    if (!rounded.borrowed) rounded.value.copy_(average_.parameters().at(rounded.name()).value);
}

}  // namespace antisd::inline trainer
