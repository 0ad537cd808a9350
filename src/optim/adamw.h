// AdamW over a model's parameters: fp32 moments, and fp32 masters beside weights of less precision.
// Weight decay takes every parameter, as torch.optim.AdamW does unless told otherwise.
//
//   AdamW optimizer(model, adamw_options(config.optim), *processes);
//   for (const MicroBatch& batch : batches) {
//     loss(batch).backward();
//     optimizer.take_gradients();
//   }
//   const UpdateReport report = optimizer.step(schedule.at(step));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "dist/communicator.h"
#include "model/causal_lm.h"

namespace antisd {

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
  // What the optimizer keeps of one parameter, on its device.
  struct State {
    at::Tensor master;         // undefined where the weight is its own master (fp32)
    at::Tensor first, second;  // moments
  };

  // Makes the model's parameters collect gradients. Model and processes outlive the optimizer.
  // Several processes hold a part of the parameters each, and the norm is over all parts.
  AdamW(CausalLm& model, AdamWOptions options, Communicator& processes);

  // After the backward pass of each micro-batch, where a step has more than one: adds the gradients
  // up in fp32. Gradients of fp32 weights add up where they are.
  void take_gradients();
  void drop_gradients();

  // Clips and steps, all in one pass over the memory. The gradients are gone afterwards, applied or
  // not. A parameter without a gradient stays as it is. Waits for the device once, for the norm.
  // `gradient_scale`: how many times too large the gradients are (see gradient_scale below).
  UpdateReport step(double lr, double gradient_scale = 1);

  std::int64_t steps() const { return steps_; }  // applied so far

  // For checkpoints: one for each of model.parameters(), in their order.
  const std::vector<State>& state() const { return state_; }
  // After new values were written into the state: the count of steps, and weights from masters.
  void restore(std::int64_t steps);

 private:
  CausalLm& model_;
  AdamWOptions options_;
  Communicator& processes_;
  std::vector<State> state_;
  std::vector<at::Tensor> sums_;  // of gradients in fp32; undefined where none was taken
  std::int64_t steps_ = 0;
};

// What a mean over `mean_tokens` is multiplied by before its backward pass. Gradients in fp16 would
// end below its smallest numbers if each token's part of the mean were divided by their number at
// once; with the power of two next to it, activations have the gradients of their own token's loss.
// 1 for the other precisions.
double gradient_scale(at::ScalarType dtype, std::int64_t mean_tokens);

}  // namespace antisd
