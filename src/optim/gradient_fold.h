// Gradients of one process, added to their fp32 sums while the backward pass still runs.
//
//   GradientFold fold(parameters);
//   for (const at::Tensor& loss : losses) {
//     fold.begin();
//     loss.backward();
//     fold.end();
//   }
//
// A 16-bit gradient of a layer is added and freed as soon as it is complete. So those of the whole
// model are never there at once beside the sums, which saves 2 bytes a parameter. The additions and
// their order are the same as at the end of the pass, and so are the bits and the time. Embedding
// and head follow at the end: a tied head gets gradients from both ends of the pass.
#pragma once

#include "model/parameter_store.h"

namespace antisd::inline optim {

class GradientFold {
 public:
  explicit GradientFold(ParameterStore& parameters);  // borrowed
  ~GradientFold();
  GradientFold(const GradientFold&) = delete;
  GradientFold& operator=(const GradientFold&) = delete;

  void begin() { in_pass_ = true; }
  void end();                        // adds what is left
  void drop() { in_pass_ = false; }  // after an error in the pass

 private:
  class Hook;

  ParameterStore& parameters_;
  bool in_pass_ = false;
};

}  // namespace antisd::inline optim
