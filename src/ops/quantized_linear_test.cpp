#include "ops/quantized_linear.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "ops/products.h"

namespace antisd::inline ops {
namespace {

void expect_near_exact(const at::Tensor& value, const at::Tensor& exact) {
  ASSERT_EQ(value.sizes(), exact.sizes());
  const double scale = exact.abs().max().item<double>() + 1e-30;
  EXPECT_LT((value.to(at::kDouble) - exact).abs().max().item<double>() / scale, 1e-5);
}

QuantizedWeight random_quantized(QuantizedKind kind, std::int64_t out, std::int64_t in) {
  QuantizedWeight weight = empty_quantized(kind, {out, in}, at::kCPU);
  quantize_into(at::randn({out, in}), weight);
  return weight;
}

TEST(QuantizedLinear, EqualsTheDequantizedProductAndItsGradients) {
  at::manual_seed(2);
  for (const QuantizedKind kind : {QuantizedKind::kInt8, QuantizedKind::kNf4}) {
    for (const auto& [in, out] : {std::pair{64, 48}, {192, 512}, {70, 33}, {1, 1}, {130, 16}}) {
      for (const std::int64_t tokens : {1, 37}) {
        const QuantizedWeight w = random_quantized(kind, out, in);
        const at::Tensor dense = dequantize(w, at::kFloat).to(at::kDouble);
        const at::Tensor x = at::randn({tokens, in}).requires_grad_(),
                         bias = at::randn({out}).requires_grad_(), h = at::randn({tokens, out}),
                         dy = at::randn({tokens, out});
        const at::Tensor exact = x.detach().to(at::kDouble).mm(dense.t());
        const at::Tensor y = quantized_linear(x, w, bias);
        expect_near_exact(y.detach(), exact + bias.detach().to(at::kDouble));
        const auto gradients = torch::autograd::grad({y}, {x, bias}, {dy});
        expect_near_exact(gradients[0], dy.to(at::kDouble).mm(dense));
        expect_near_exact(gradients[1], dy.to(at::kDouble).sum(0));

        const at::NoGradGuard no_grad;
        expect_near_exact(quantized_linear(x, w, {}), exact);
        expect_near_exact(quantized_product(x, w, h), h.to(at::kDouble) + exact);
        const at::Tensor stream = h.clone();
        add_quantized_product_(stream, x, w);
        expect_near_exact(stream, h.to(at::kDouble) + exact);
      }
    }
  }
}

// A frozen base: without a gradient for x nothing is recorded, and a frozen bias gets none.
TEST(QuantizedLinear, RecordsOnlyWhatIsTrained) {
  const QuantizedWeight w = random_quantized(QuantizedKind::kNf4, 16, 64);
  const at::Tensor bias = at::randn({16});
  EXPECT_FALSE(quantized_linear(at::randn({3, 64}), w, bias).requires_grad());
  const at::Tensor x = at::randn({3, 64}).requires_grad_();
  quantized_linear(x, w, bias).sum().backward();
  EXPECT_TRUE(x.grad().defined());
  EXPECT_FALSE(bias.grad().defined());
}

TEST(QuantizedLinear, DoesNotDependOnTheNumberOfThreads) {
  const QuantizedWeight w = random_quantized(QuantizedKind::kNf4, 512, 192);
  const at::Tensor x = at::randn({300, 192});
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor alone = quantized_linear(x, w, {});
  at::set_num_threads(3);
  const at::Tensor together = quantized_linear(x, w, {});
  at::set_num_threads(threads);
  EXPECT_TRUE(alone.equal(together));
  EXPECT_TRUE(alone.equal(antisd::linear(x, dequantize(w, at::kFloat), {})));
}

}  // namespace
}  // namespace antisd::inline ops
