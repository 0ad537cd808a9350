// AdamW over a model's parameters: fp32 moments, and fp32 masters beside weights of less precision.
// Weight decay takes every parameter, as torch.optim.AdamW does unless told otherwise.
//
//   AdamW optimizer(model, adamw_options(config.optim), *processes);
//   for (const at::Tensor& loss : losses) {  // of each micro-batch
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
  double grad_clip = 1.0;  // the largest norm; infinity: none
};

AdamWOptions adamw_options(const OptimConfig& config);

struct UpdateReport {
  double grad_norm = 0;   // of all parameters together, before clipping
  double clip_scale = 1;  // what the gradients were multiplied by
  bool applied = false;   // false where the norm is not finite: nothing was changed
  std::string culprit;    // then: the first parameter whose gradient is not finite
};

class AdamW {
 public:
  // Makes the model's trainable parameters collect gradients, and their masters and moments in the
  // store. The model outlives the optimizer. Every process holds all parameters and a part of the
  // batch; until gradients are summed over processes, more than one is refused.
  AdamW(CausalLm& model, AdamWOptions options, const Communicator& processes);

  // After the backward pass of each micro-batch, where a step has more than one: adds the gradients
  // up in fp32. Gradients of fp32 weights add up where they are.
  void take_gradients() { parameters_.take_gradients(); }
  void drop_gradients() { parameters_.drop_gradients(); }

  // Clips and steps, all in one pass over the memory. The gradients are gone afterwards, applied or
  // not. A parameter without a gradient stays as it is, and so does a frozen one. Waits for the
  // device once, for the norm. `gradient_scale`: how many times too large the gradients are (see
  // gradient_scale below).
  UpdateReport step(double lr, double gradient_scale = 1);

  std::int64_t steps() const { return steps_; }  // applied so far

  // After new masters and moments were written: the count of steps, and weights from masters.
  void restore(std::int64_t steps);

 private:
  ParameterStore& parameters_;
  AdamWOptions options_;
  std::int64_t steps_ = 0;
};

// What a mean over `mean_tokens` is multiplied by before its backward pass. Gradients in fp16 would
// end below its smallest numbers if each token's part of the mean were divided by their number at
// once; with the power of two next to it, activations have the gradients of their own token's loss.
// 1 for the other precisions.
double gradient_scale(at::ScalarType dtype, std::int64_t mean_tokens);

}  // namespace antisd::inline optim
