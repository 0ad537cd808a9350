// The stream that runs through a model's layers. What a layer adds waits until the stream is read
// again, so that adding and norming can be one pass over memory, and so that a product which nobody
// reads is never computed.
//
//   x.add(self_attention(x.normed(w.first_norm, eps), w, ...));
//   x.add(gated_unit(x.normed(w.second_norm, eps), w));
#pragma once

#include <ATen/core/Tensor.h>

namespace antisd {

// Whether the CPU's own product without gradients (ops/cpu_gated_unit.h) takes these.
bool suits_cpu_linear(const at::Tensor& x, const at::Tensor& bias);

// x weight^T + bias, not yet computed. x: [tokens, in]; weight: [out, in]; bias may be undefined.
// Without a weight it is x itself.
struct Product {
  at::Tensor x, weight, bias;

  at::Tensor value() const;
};

class ResidualStream {
 public:
  // `x`: [tokens, hidden]. Where gradients are off and `x` is the stream's own, it is changed in
  // place.
  explicit ResidualStream(at::Tensor x, bool own) : x_(std::move(x)), own_(own) {}

  // rms_norm of the stream.
  at::Tensor normed(const at::Tensor& weight, double eps);
  void add(Product product);
  void add(at::Tensor y);

  // The stream itself. Where a layer is computed anew for its gradients (is_recomputing()), a
  // product that waits is left out of the value, though not of the gradients: nobody reads the
  // value of a layer then.
  const at::Tensor& value();

 private:
  at::Tensor pending_value() const;

  at::Tensor x_;
  bool own_;
  Product product_;  // waits, or
  at::Tensor y_;     // waits
};

}  // namespace antisd
