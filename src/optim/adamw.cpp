#include "optim/adamw.h"

#include <cmath>

#include <ATen/core/grad_mode.h>

#include "core/check.h"
#include "ops/adamw.h"
#include "ops/squared_norms.h"

namespace antisd::inline optim {

AdamWOptions adamw_options(const OptimConfig& config) {
  ANTISD_CHECK_EQ(config.betas.size(), 2u);  // RunConfig::validate
  return {.beta1 = config.betas[0],
          .beta2 = config.betas[1],
          .eps = config.eps,
          .weight_decay = config.weight_decay,
          .grad_clip = config.grad_clip};
}

AdamW::AdamW(CausalLm& model, AdamWOptions options, const Communicator& processes)
    : parameters_(model.parameters()), options_(options) {
  refuse_several(processes);
  parameters_.require_gradients();
  parameters_.make_optimizer_state();
}

UpdateReport AdamW::step(double lr, double gradient_scale) {
  const at::NoGradGuard no_grad;
  std::vector<Parameter*> updated;
  std::vector<at::Tensor> gradients;  // of those
  for (Parameter& parameter : parameters_) {
    if (!parameter.spec.trainable) continue;
    const at::Tensor& own = parameter.value.grad();
    // 16-bit gradients that were not taken come from a single backward pass and need no sum.
    ANTISD_CHECK(!(parameter.gradient_sum.defined() && own.defined()));
    const at::Tensor& gradient = parameter.gradient_sum.defined() ? parameter.gradient_sum : own;
    if (!gradient.defined()) continue;
    updated.push_back(&parameter);
    gradients.push_back(gradient.contiguous());
  }
  drop_gradients();

  UpdateReport report;
  const std::vector<double> squares = fetch_squared_norms(gradients);
  double total = 0;
  for (std::size_t i = 0; i < squares.size(); ++i) {
    total += squares[i];
    if (!std::isfinite(squares[i]) && report.culprit.empty()) report.culprit = updated[i]->name();
  }
  report.grad_norm = std::sqrt(total) / gradient_scale;
  if (!std::isfinite(report.grad_norm)) return report;
  // The epsilon is torch.nn.utils.clip_grad_norm_'s.
  report.clip_scale = std::min(1.0, options_.grad_clip / (report.grad_norm + 1e-6));
  report.applied = true;
  ++steps_;
  const AdamWFactors factors = adamw_factors({.lr = lr,
                                              .beta1 = options_.beta1,
                                              .beta2 = options_.beta2,
                                              .eps = options_.eps,
                                              .weight_decay = options_.weight_decay},
                                             steps_, report.clip_scale / gradient_scale);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Parameter& parameter = *updated[i];
    adamw_step({parameter.value.detach(), parameter.master, gradients[i], parameter.first_moment,
                parameter.second_moment},
               factors);
    gradients[i].reset();
  }
  return report;
}

double gradient_scale(at::ScalarType dtype, std::int64_t mean_tokens) {
  ANTISD_CHECK_LE(1, mean_tokens);
  return dtype == at::kHalf ? std::exp2(std::floor(std::log2(static_cast<double>(mean_tokens))))
                            : 1;
}

void AdamW::restore(std::int64_t steps) {
  const at::NoGradGuard no_grad;
  steps_ = steps;
  drop_gradients();
  for (Parameter& parameter : parameters_) {
    if (parameter.master.defined()) parameter.value.copy_(parameter.master);
  }
}

}  // namespace antisd::inline optim
