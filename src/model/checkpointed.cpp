#include "model/checkpointed.h"

namespace antisd::inline model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

using LayerFunction = std::function<at::Tensor(const at::Tensor&, Pass)>;
using HoldFunction = std::function<std::shared_ptr<void>()>;

// Stores the function in the autograd context, which holds only such objects.
struct FunctionHolder : torch::CustomClassHolder {
  FunctionHolder(LayerFunction function, HoldFunction hold)
      : function(std::move(function)), hold(std::move(hold)) {}
  LayerFunction function;
  HoldFunction hold;
};

struct Checkpointed : torch::autograd::Function<Checkpointed> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const c10::intrusive_ptr<FunctionHolder>& holder) {
    context->save_for_backward({x});
    context->saved_data["function"] = c10::IValue::make_capsule(holder);
    const at::NoGradGuard no_grad;
    return holder->function(x, Pass::kInference);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto capsule = context->saved_data["function"].toCapsule();
    const auto& holder = static_cast<FunctionHolder&>(*capsule);
    const std::shared_ptr<void> held = holder.hold();
    const at::Tensor x = context->get_saved_variables()[0].detach().requires_grad_(true);
    const at::AutoGradMode with_grad(true);
    const at::Tensor y = holder.function(x, Pass::kRecomputed);
    torch::autograd::backward({y},
                              {gradients[0]});  // also adds to the leaves that the function reads
    return {x.grad(), at::Tensor()};
  }
};

}  // namespace

at::Tensor checkpointed(const LayerFunction& function, const at::Tensor& x,
                        const HoldFunction& hold) {
  return Checkpointed::apply(x, c10::make_intrusive<FunctionHolder>(function, hold));
}

}  // namespace antisd::inline model
