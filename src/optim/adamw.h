// AdamW over a model's parameters: fp32 moments, and fp32 masters for weights of lower precision.
// Weight decay applies to every parameter, as in torch.optim.AdamW by default.
//
//   AdamW optimizer(model, adamw_options(config.optim), *processes);
//   for (const at::Tensor& loss : losses) {  // one per micro-batch
//     loss.backward();
//     optimizer.take_gradients();
//   }
//   const UpdateReport report = optimizer.step(schedule.at(step));
#pragma once

#include <cstdint>
#include <string>

#include "config/run_config.h"
#include "dist/communicator.h"
#include "model/causal_lm.h"

namespace antisd::inline optim {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  double grad_clip = 1.0;  // the largest norm; infinity: no clipping
};

AdamWOptions adamw_options(const OptimConfig& config);

struct UpdateReport {
  double grad_norm = 0;   // of all parameters together, before clipping
  double clip_scale = 1;  // what the gradients were multiplied by
  bool applied = false;   // false if the norm is not finite: nothing was changed
  std::string culprit;    // in that case, the first parameter with a gradient that is not finite
};

class AdamW {
 public:
  // Lets the model's trainable parameters collect gradients, and allocates their masters and
  // moments in the store. The model must outlive the optimizer. Every process holds all parameters
  // and a part of the batch; until gradients are summed over processes, more than one is refused.
  AdamW(CausalLm& model, AdamWOptions options, const Communicator& processes);

  // Call it after each micro-batch's backward pass if a step has several: it sums the gradients in
  // fp32. Gradients of fp32 weights are summed in place.
  void take_gradients() { parameters_.take_gradients(); }
  void drop_gradients() { parameters_.drop_gradients(); }

  // Clips and updates in one pass over the memory. The gradients are cleared, applied or not.
  // Parameters without a gradient and frozen ones do not change. Synchronises with the device once,
  // for the norm. `gradient_scale`: the factor by which the gradients are too large (see below).
  UpdateReport step(double lr, double gradient_scale = 1);

  std::int64_t steps() const { return steps_; }  // applied so far

  // Call it after masters and moments were loaded: sets the step count and the weights from the
  // masters.
  void restore(std::int64_t steps);

 private:
  ParameterStore& parameters_;
  AdamWOptions options_;
  std::int64_t steps_ = 0;
};

// Loss scaling: the factor on a mean over `mean_tokens` before its backward pass. In fp16,
// gradients underflow if each token's loss is divided by the number of tokens at once; with the
// nearest power of two as a factor, activations have the gradients of their own token's loss. 1 for
// the other precisions.
double gradient_scale(at::ScalarType dtype, std::int64_t mean_tokens);

}  // namespace antisd::inline optim
