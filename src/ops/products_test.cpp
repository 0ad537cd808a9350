#include "ops/products.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace antisd::inline ops {
namespace {

void expect_near(const at::Tensor& value, const at::Tensor& exact) {
  ASSERT_EQ(value.sizes(), exact.sizes());
  const double scale = exact.abs().max().item<double>() + 1e-30;
  EXPECT_LT((value.to(at::kDouble) - exact).abs().max().item<double>() / scale, 1e-5);
}

// Tokens, inputs and outputs around the block sizes: multiples, others, and one.
TEST(Products, EqualTheExactProducts) {
  at::manual_seed(3);
  for (const std::int64_t tokens : {1, 17, 256, 700}) {
    for (const auto& [in, out] : {std::pair{16, 48}, {192, 512}, {512, 192}, {48, 50}, {30, 16}}) {
      const at::Tensor x = at::randn({tokens, in}), w = at::randn({out, in}),
                       h = at::randn({tokens, out}), dy = at::randn({tokens, out});
      const auto exact = [](const at::Tensor& t) { return t.to(at::kDouble); };
      expect_near(product_nt(x, w, {}), exact(x).mm(exact(w).t()));
      expect_near(product_nt(x, w, h), exact(h) + exact(x).mm(exact(w).t()));
      expect_near(product_nn(dy, w), exact(dy).mm(exact(w)));
      expect_near(product_tn(dy, x), exact(dy).t().mm(exact(x)));
    }
  }
}

TEST(Products, LinearHasTheGradientsOfTheTensorLibrary) {
  at::manual_seed(4);
  for (const bool with_bias : {false, true}) {
    at::Tensor x = at::randn({37, 64}), w = at::randn({96, 64}), b = at::randn({96});
    const at::Tensor dy = at::randn({37, 96});
    std::vector<std::vector<at::Tensor>> gradients;
    for (const bool own : {true, false}) {
      std::vector<at::Tensor> leaves = {x.clone().requires_grad_(), w.clone().requires_grad_()};
      if (with_bias) leaves.push_back(b.clone().requires_grad_());
      const at::Tensor bias = with_bias ? leaves[2] : at::Tensor();
      const at::Tensor y =
          own ? linear(leaves[0], leaves[1], bias)
              : at::linear(leaves[0], leaves[1],
                           with_bias ? std::optional(bias) : std::optional<at::Tensor>());
      gradients.push_back(torch::autograd::grad({y}, leaves, {dy}));
    }
    for (std::size_t i = 0; i < gradients[0].size(); ++i)
      expect_near(gradients[0][i], gradients[1][i].to(at::kDouble));
  }
}

TEST(Products, DoNotDependOnTheNumberOfThreads) {
  at::manual_seed(5);
  const at::Tensor x = at::randn({700, 192}), w = at::randn({512, 192}), dy = at::randn({700, 512});
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor alone[] = {product_nt(x, w, {}), product_nn(dy, w), product_tn(dy, x)};
  at::set_num_threads(3);
  const at::Tensor together[] = {product_nt(x, w, {}), product_nn(dy, w), product_tn(dy, x)};
  at::set_num_threads(threads);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(alone[i].equal(together[i]));
}

}  // namespace
}  // namespace antisd::inline ops
