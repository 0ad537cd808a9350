#include "optim/gradient_fold.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "model/testing.h"
#include "model/weights.h"

namespace antisd::inline optim {
namespace {

TEST(GradientFold, LayersAreAddedInTheBackwardPassAndTheRestAfterIt) {
  CausalLm model(parse_model_shape(testing::small_config(), "small"), at::kCPU, at::kBFloat16);
  initialise_randomly(model, 3, 0.3);
  ParameterStore& parameters = model.parameters();
  parameters.require_gradients();
  GradientFold fold(parameters);
  const auto go_back = [&](double factor) {
    at::Tensor loss = at::zeros({});
    for (const Parameter& parameter : parameters)
      loss = loss + parameter.value.to(at::kFloat).pow(3).sum() * factor;
    loss.backward();
  };
  std::vector<at::Tensor> expected;  // fp32 sums of bf16 gradients, outside of a pass
  for (const double factor : {1.0, 0.3}) {
    go_back(factor);
    std::size_t i = 0;
    for (Parameter& parameter : parameters) {
      ASSERT_TRUE(parameter.value.grad().defined());
      ASSERT_FALSE(parameter.gradient_sum.defined());
      const at::Tensor gradient = parameter.value.grad().to(at::kFloat);
      factor == 1 ? expected.push_back(gradient) : void(expected[i++].add_(gradient));
      parameter.value.mutable_grad().reset();
    }
  }
  for (const double factor : {1.0, 0.3}) {
    fold.begin();
    go_back(factor);
    for (const ParameterBlock& block : parameters.blocks()) {
      for (const Parameter& parameter : parameters.of(block)) {
        EXPECT_EQ(parameter.value.grad().defined(), !block.layer) << parameter.name();
        if (block.layer) {
          EXPECT_TRUE(parameter.gradient_sum.defined()) << parameter.name();
        }
      }
    }
    fold.end();
  }
  std::size_t i = 0;
  for (const Parameter& parameter : parameters) {
    EXPECT_FALSE(parameter.value.grad().defined());
    EXPECT_TRUE(parameter.gradient_sum.equal(expected[i++])) << parameter.name();
  }
}

}  // namespace
}  // namespace antisd::inline optim
