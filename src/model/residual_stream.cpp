#include "model/residual_stream.h"

#include "ops/products.h"
#include "ops/quantized_linear.h"
#include "ops/rms_norm.h"
#include "ops/stream_norm.h"

namespace antisd::inline model {
namespace {

// h + x w^T, rounded once, to h's fp32.
at::Tensor plus_product(const at::Tensor& h, const at::Tensor& x, const Linear& linear) {
  if (linear.quantized.defined()) return quantized_product(x, linear.quantized, h);
  const at::Tensor& w = linear.weight;
  return x.scalar_type() == at::kFloat ? product_nt(x, w, h) : at::addmm(h, x, w.t(), at::kFloat);
}

// In place, to products of 16 bits.
void add_product_(at::Tensor h, const at::Tensor& x, const Linear& linear) {
  if (linear.quantized.defined()) return add_quantized_product_(h, x, linear.quantized);
  at::addmm_out(h, h, x, linear.weight.t(), at::kFloat);
}

}  // namespace

ResidualStream::ResidualStream(const at::Tensor& x, bool own, Pass pass)
    : x_(x.to(at::kFloat)), own_(own || x.scalar_type() != at::kFloat), pass_(pass) {}

void ResidualStream::add(Product product) {
  if (!product.linear.defined()) return add(std::move(product.x));
  add_pending(/*may_leave_out=*/false);
  product_ = std::move(product);
}

void ResidualStream::add(at::Tensor y) {
  add_pending(/*may_leave_out=*/false);
  y_ = std::move(y);
}

// Of the pending product.
void ResidualStream::add_adapter(LoraSum sum) {
  if (const LoraWeights* adapter = product_.linear.adapter.get())
    x_ = add_lora(x_, product_.x, *adapter, sum);
}

void ResidualStream::add_pending(bool may_leave_out) {
  if (product_.x.defined()) {
    const at::Tensor& x = product_.x;
    const Linear& w = product_.linear;
    const at::Tensor& bias = w.bias;
    if (pass_ != Pass::kInference) {
      const bool left_out = may_leave_out && pass_ == Pass::kRecomputed;
      add_adapter(left_out ? LoraSum::kLeftOut : LoraSum::kNew);
      x_ = add_product(x_, {x, w.weight, bias, w.quantized}, left_out);
    } else {
      // In the order, and in fp32 by the product, of a pass with gradients: a layer that is
      // recomputed has the bits of one that is kept.
      add_adapter(own_ ? LoraSum::kInPlace : LoraSum::kNew);
      own_ = own_ || w.adapter;
      if (own_ && x.scalar_type() != at::kFloat) {
        add_product_(x_, x, w);
      } else {
        x_ = plus_product(x_, x, w);
      }
      if (bias.defined()) x_.add_(bias);
    }
    own_ = true;
  } else if (y_.defined()) {
    if (own_ && pass_ == Pass::kInference) {
      x_.add_(y_);
    } else {
      x_ = x_ + y_;
    }
    own_ = true;
  }
  product_ = {};
  y_ = at::Tensor();
}

at::Tensor ResidualStream::normed(const at::Tensor& weight, double eps) {
  if (pass_ == Pass::kInference) {
    add_pending(/*may_leave_out=*/false);
    return rms_norm(x_, weight, eps);
  }
  if (y_.defined()) add_pending(/*may_leave_out=*/false);
  add_adapter(LoraSum::kNew);  // the stream before is kept for its own gradient
  const Linear& w = product_.linear;
  StreamNorm next = add_and_norm(x_, {product_.x, w.weight, w.bias, w.quantized}, weight, eps);
  x_ = std::move(next.stream);
  own_ = own_ || product_.x.defined();
  product_ = {};
  return std::move(next.normed);
}

const at::Tensor& ResidualStream::value() {
  add_pending(/*may_leave_out=*/true);
  return x_;
}

}  // namespace antisd::inline model
