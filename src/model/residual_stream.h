// The stream that runs through a model's layers, in fp32 whatever the weights are: dozens of
// additions rounded to bf16 are the largest error of a bf16 model. What a layer adds waits until
// the stream is read again; then its last product adds straight into the stream, and a product
// which nobody reads is never computed.
//
//   x.add(self_attention(x.normed(w.first_norm, eps), w, QkNorm::kHead, in));
//   x.add(gated_unit(x.normed(w.second_norm, eps), w));
#pragma once

#include "model/linear.h"
#include "model/pass.h"

namespace antisd::inline model {

class ResidualStream {
 public:
  // `x`: [tokens, hidden]. For inference, an `x` of the stream's own is changed in place.
  ResidualStream(const at::Tensor& x, bool own, Pass pass);

  // rms_norm of the stream, in the weight's precision.
  at::Tensor normed(const at::Tensor& weight, double eps);
  void add(Product product);
  void add(at::Tensor y);

  // The stream itself, fp32. Where a layer is computed again for its gradients (kRecomputed), a
  // product that waits is left out of the value, though not of the gradients: nobody reads the
  // value of a layer then.
  const at::Tensor& value();

 private:
  void add_pending(bool may_leave_out);

  at::Tensor x_;
  bool own_;
  Pass pass_;
  Product product_;  // waits, or
  at::Tensor y_;     // waits
};

}  // namespace antisd::inline model
