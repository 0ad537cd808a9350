#include "optim/gradient_fold.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace antisd::inline optim {

// Called by the backward pass, after a parameter's gradient is complete.
class GradientFold::Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(GradientFold& fold, Parameter& parameter) : fold_(fold), parameter_(parameter) {}
  void operator()(const torch::autograd::Variable&) override {
    if (fold_.in_pass_) fold_.parameters_.take_gradient(parameter_);
  }

 private:
  GradientFold& fold_;
  Parameter& parameter_;
};

GradientFold::GradientFold(ParameterStore& parameters) : parameters_(parameters) {
  for (const ParameterBlock& block : parameters_.blocks()) {
    if (!block.layer || block.values.scalar_type() == at::kFloat) continue;
    for (Parameter& parameter : parameters_.of(block)) {
      if (parameter.spec.trainable)
        torch::autograd::impl::set_post_acc_grad_hooks(parameter.value,
                                                       std::make_unique<Hook>(*this, parameter));
    }
  }
}

GradientFold::~GradientFold() {
  for (const Parameter& parameter : parameters_)
    if (parameter.spec.trainable)
      torch::autograd::impl::set_post_acc_grad_hooks(parameter.value, nullptr);
}

void GradientFold::end() {
  in_pass_ = false;
  parameters_.take_gradients();
}

}  // namespace antisd::inline optim
