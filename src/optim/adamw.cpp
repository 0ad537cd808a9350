#include "optim/adamw.h"

#include <cmath>

#include <ATen/core/grad_mode.h>

#include "core/check.h"
#include "ops/adamw.h"
#include "ops/squared_norms.h"

namespace antisd {

AdamWOptions adamw_options(const OptimConfig& config) {
  ANTISD_CHECK_EQ(config.betas.size(), 2u);  // RunConfig::validate
  return {.beta1 = config.betas[0],
          .beta2 = config.betas[1],
          .eps = config.eps,
          .weight_decay = config.weight_decay,
          .grad_clip = config.grad_clip};
}

AdamW::AdamW(CausalLm& model, AdamWOptions options, Communicator& processes)
    : model_(model), options_(options), processes_(processes) {
  model.require_gradients();
  for (const Parameter& parameter : model.parameters()) {
    const at::Tensor weight = parameter.value.detach();
    State& state = state_.emplace_back();
    if (weight.scalar_type() != at::kFloat) state.master = weight.to(at::kFloat);
    state.first = at::zeros_like(weight, at::kFloat);
    state.second = at::zeros_like(state.first);
  }
  sums_.resize(state_.size());
}

void AdamW::take_gradients() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < state_.size(); ++i) {
    at::Tensor& gradient = model_.parameters()[i].value.mutable_grad();
    if (!gradient.defined() || gradient.scalar_type() == at::kFloat) continue;
    if (sums_[i].defined()) {
      sums_[i].add_(gradient);
    } else {
      sums_[i] = gradient.to(at::kFloat);
    }
    gradient.reset();
  }
}

void AdamW::drop_gradients() {
  for (std::size_t i = 0; i < state_.size(); ++i) {
    model_.parameters()[i].value.mutable_grad().reset();
    sums_[i].reset();
  }
}

UpdateReport AdamW::step(double lr, double gradient_scale) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  std::vector<std::size_t> owners;  // of the gradients, among the parameters
  for (std::size_t i = 0; i < state_.size(); ++i) {
    const at::Tensor& own = model_.parameters()[i].value.grad();
    // Of 16-bit gradients that were not taken there is one set alone, which needs no sum.
    ANTISD_CHECK(!(sums_[i].defined() && own.defined()));
    const at::Tensor& gradient = sums_[i].defined() ? sums_[i] : own;
    if (!gradient.defined()) continue;
    gradients.push_back(gradient.contiguous());
    owners.push_back(i);
  }
  drop_gradients();

  UpdateReport report;
  const std::vector<double> squares = fetch_squared_norms(gradients);
  double total = 0;
  for (std::size_t i = 0; i < squares.size(); ++i) {
    total += squares[i];
    if (!std::isfinite(squares[i]) && report.culprit.empty())
      report.culprit = model_.parameters()[owners[i]].name;
  }
  report.grad_norm = std::sqrt(sum(processes_, total)) / gradient_scale;
  if (!std::isfinite(report.grad_norm)) return report;
  // The small number is torch.nn.utils.clip_grad_norm_'s.
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
    const State& state = state_[owners[i]];
    adamw_step({model_.parameters()[owners[i]].value.detach(), state.master, gradients[i],
                state.first, state.second},
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
  for (std::size_t i = 0; i < state_.size(); ++i) {
    if (state_[i].master.defined()) model_.parameters()[i].value.copy_(state_[i].master);
  }
}

}  // namespace antisd
