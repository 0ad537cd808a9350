#include "trainer/other_teacher.h"

#include <ATen/ATen.h>

#include "ops/host_memory.h"

namespace antisd::inline trainer {
namespace {

// Memory of the host for a block's values, from which the device copies at full speed.
at::Tensor host_like(const at::Tensor& values) {
  const auto bytes = static_cast<std::int64_t>(values.nbytes());
  const at::Tensor memory = host_zeros((bytes + 3) / 4, values.device(), "method.teacher.path");
  return memory.view(values.scalar_type()).narrow(0, 0, values.numel());
}

}  // namespace

OtherTeacher::OtherTeacher(CausalLm model, TeacherRest rest) : model_(std::move(model)) {
  if (rest == TeacherRest::kWhereItIs) return;
  const at::NoGradGuard no_grad;
  for (const ParameterBlock& block : model_.parameters().blocks())
    at_rest_.push_back(host_like(block.values).copy_(block.values));
  free();
}

void OtherTeacher::bring() {
  if (at_rest_.empty()) return;
  const at::NoGradGuard no_grad;
  const std::vector<ParameterBlock>& blocks = model_.parameters().blocks();
  try {
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      at::Tensor memory = at::empty_like(at_rest_[b], at::device(model_.device()));
      memory.copy_(at_rest_[b], /*non_blocking=*/true);  // in the order of the device's stream
      model_.parameters().place_values(blocks[b], std::move(memory));
    }
  } catch (...) {
    free();
    throw;
  }
}

void OtherTeacher::free() noexcept {
  if (at_rest_.empty()) return;
  for (const ParameterBlock& block : model_.parameters().blocks())
    model_.parameters().free_values(block);
}

}  // namespace antisd::inline trainer
