#include "ops/gradients.h"

#include <gtest/gtest.h>

#include "ops/attention.h"
#include "ops/token_scores.h"

namespace antisd::inline ops {
namespace {

constexpr std::int64_t kTokens = 5, kWidth = 8;

at::Tensor random_leaf(std::vector<std::int64_t> sizes, std::uint64_t seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kFloat).requires_grad_(true);
}

at::Tensor attended(const at::Tensor& q, Gradients gradients) {
  const std::int32_t tokens = kTokens;
  const AttentionLayout layout{.query_offsets = {0, tokens},
                               .key_offsets = {0, tokens},
                               .device_query_offsets = {},
                               .device_key_offsets = {},
                               .longest_query = kTokens,
                               .longest_key = kTokens,
                               .key_rows = {}};
  return attention(q, q, q, layout, /*window=*/0, /*scale=*/0.5, gradients);
}

at::Tensor scored(const at::Tensor& hidden, Gradients gradients) {
  const at::Tensor head = at::ones({3, kWidth}) * at::arange(3).unsqueeze(1);
  const at::Tensor targets = at::ones({kTokens}, at::kInt);
  return token_scores(hidden, head, targets, 1.0, 3, gradients).logp;
}

// The same values under either mode of the thread, with a graph where one was asked for.
void expect_the_caller_decides(const at::Tensor& leaf,
                               at::Tensor (*op)(const at::Tensor&, Gradients)) {
  const at::Tensor value = op(leaf, Gradients::kRecorded);
  value.sum().backward();
  EXPECT_GT(leaf.grad().abs().sum().item<double>(), 0);
  for (const bool mode : {false, true}) {
    const at::AutoGradMode of_the_thread(mode);
    const at::Tensor plain = op(leaf, Gradients::kNone);
    EXPECT_FALSE(plain.requires_grad());
    EXPECT_TRUE(at::equal(plain, value));
    const at::Tensor recorded = op(leaf, Gradients::kRecorded);
    EXPECT_TRUE(recorded.requires_grad());
    EXPECT_TRUE(at::equal(recorded, value));
    EXPECT_EQ(at::GradMode::is_enabled(), mode);
  }
}

TEST(Gradients, TheCallerDecidesNotTheThread) {
  expect_the_caller_decides(random_leaf({kTokens, 2, kWidth}, 1), attended);
  expect_the_caller_decides(random_leaf({kTokens, kWidth}, 2), scored);
}

}  // namespace
}  // namespace antisd::inline ops
