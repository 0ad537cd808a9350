// A teacher with its own weights: an exponential moving average of the student's, in fp32. Of a
// student with adapters it is the average of these, above the same base.
//
//   SlowTeacher teacher(state.model);                              // starts with its weights
//   teacher.follow(state.model, state.optimizer, /*rate=*/0.05);   // after each step
//   score(teacher.model(), requests);
#pragma once

#include <optional>

#include "model/causal_lm.h"
#include "optim/adamw.h"

namespace antisd::inline trainer {

class SlowTeacher {
 public:
  explicit SlowTeacher(const CausalLm& student);

  // The model it computes with: the average in the student's precision.
  const CausalLm& model() const { return rounded_ ? *rounded_ : average_; }

  // average += rate (student - average), with the student's fp32 masters, wherever the optimizer
  // has them. All ranks call it.
  void follow(const CausalLm& student, const AdamW& optimizer, double rate);

  // For checkpoints. Call refresh() after changing the average.
  const CausalLm& average() const { return average_; }
  CausalLm& average() { return average_; }
  void refresh();

 private:
  CausalLm average_;                 // fp32; the base below adapters in the student's precision
  std::optional<CausalLm> rounded_;  // if the student computes in lower precision
};

}  // namespace antisd::inline trainer
