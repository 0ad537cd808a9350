// The residual stream of a model, in fp32 whatever the weights' precision: dozens of additions
// rounded to bf16 would be the largest error of a bf16 model. A layer's output is pending until the
// stream is read; then its last product is added directly into the stream. A product that is never
// read is never computed.
//
//   x.add(self_attention(x.normed(w.first_norm, eps), w, QkNorm::kHead, in));
//   x.add(gated_unit(x.normed(w.second_norm, eps), w));
#pragma once

#include "model/linear.h"
#include "model/pass.h"

namespace antisd::inline model {

class ResidualStream {
 public:
  // `x`: [tokens, hidden]. For inference, an `x` that the stream owns is changed in place.
  ResidualStream(const at::Tensor& x, bool own, Pass pass);

  // rms_norm of the stream, in the weight's precision.
  at::Tensor normed(const at::Tensor& weight, double eps);
  void add(Product product);
  void add(at::Tensor y);

  // The stream in fp32. When a layer is recomputed for its gradients (kRecomputed), a pending
  // product is left out of the value but not of the gradients, since the value is not read.
  const at::Tensor& value();

 private:
  void add_pending(bool may_leave_out);
  void add_adapter(LoraSum sum);

  at::Tensor x_;
  bool own_;
  Pass pass_;
  Product product_;  // pending, or
  at::Tensor y_;     // pending
};

}  // namespace antisd::inline model
