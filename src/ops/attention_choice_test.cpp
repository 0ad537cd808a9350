#include "ops/attention_choice.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antisd::inline ops {
namespace {

constexpr AttentionCard kHopper{90, 91'900}, kBlackwell{100, 91'900}, kAmpere{80, 91'900};

AttentionLayout layout_of(const std::vector<std::int32_t>& lengths) {
  AttentionLayout layout;
  layout.query_offsets = {0};
  for (const std::int32_t length : lengths) {
    layout.query_offsets.push_back(layout.query_offsets.back() + length);
    layout.longest_query = std::max<std::int64_t>(layout.longest_query, length);
  }
  layout.key_offsets = layout.query_offsets;
  layout.longest_key = layout.longest_query;
  return layout;
}

AttentionCode choice(const AttentionCard& card, const std::vector<std::int32_t>& lengths,
                     std::int64_t window = 0, std::int64_t head_dim = 128,
                     at::ScalarType dtype = at::kBFloat16) {
  const AttentionLayout layout = layout_of(lengths);
  return choose_attention(card, at::empty({1, 16, head_dim}, dtype), layout, window);
}

TEST(AttentionChoice, ByCard) {
  const std::vector<std::int32_t> ragged = {3000, 700}, equal = {1024, 1024};
  EXPECT_EQ(choice(kHopper, ragged), AttentionCode::kRagged);
  EXPECT_EQ(choice(kBlackwell, ragged), AttentionCode::kPacked);
  EXPECT_EQ(choice(kAmpere, ragged), AttentionCode::kPacked);
  EXPECT_EQ(choice({90, 91'800}, ragged), AttentionCode::kPacked);
  EXPECT_EQ(choice({90, 0}, ragged), AttentionCode::kPacked);
  EXPECT_EQ(choice(kHopper, equal), AttentionCode::kDense);
  EXPECT_EQ(choice(kBlackwell, equal), AttentionCode::kDense);
  EXPECT_EQ(choice(kAmpere, equal), AttentionCode::kPacked);
}

TEST(AttentionChoice, ByShape) {
  EXPECT_EQ(choice(kHopper, {1024, 1024}, /*window=*/100), AttentionCode::kRagged);
  EXPECT_EQ(choice(kHopper, {1000, 1000}), AttentionCode::kRagged);
  EXPECT_EQ(choice(kHopper, {3000, 700}, 0, 64), AttentionCode::kRagged);
  EXPECT_EQ(choice(kHopper, {3000, 700}, 0, 96), AttentionCode::kPacked);
  EXPECT_EQ(choice(kHopper, {3000, 700}, 0, 256), AttentionCode::kPacked);
  EXPECT_EQ(choice(kHopper, {3000, 700}, 0, 128, at::kHalf), AttentionCode::kRagged);
  EXPECT_EQ(choice(kHopper, {3000, 700}, 0, 128, at::kFloat), AttentionCode::kPacked);
  EXPECT_EQ(choice(kHopper, {1024, 1024}, 0, 128, at::kFloat), AttentionCode::kPacked);
  EXPECT_EQ(choice(kHopper, {511, 30}), AttentionCode::kPacked);
  EXPECT_EQ(choice(kHopper, {512, 30}), AttentionCode::kRagged);
  EXPECT_EQ(choice(kHopper, {3000, 0}), AttentionCode::kPacked);
  // 16 heads of 128: 2^31 elements are 2^20 rows.
  EXPECT_EQ(choice(kHopper, {1'000'000, 48'574}), AttentionCode::kRagged);
  EXPECT_EQ(choice(kHopper, {1'000'000, 48'576}), AttentionCode::kPacked);
}

TEST(AttentionChoice, BackwardInAFixedOrderLeavesToFlashAttentionWhatItDoesSlowly) {
  const auto choose = [](SumOrder sums, std::int64_t window, bool prefix, bool too_long) {
    return choose_ragged_backward(sums, window, prefix, too_long);
  };
  EXPECT_EQ(choose(SumOrder::kAny, 0, false, false), AttentionCode::kRagged);
  EXPECT_EQ(choose(SumOrder::kAny, 4096, true, true), AttentionCode::kRagged);
  EXPECT_EQ(choose(SumOrder::kFixed, 0, false, false), AttentionCode::kRagged);
  EXPECT_EQ(choose(SumOrder::kFixed, 4096, false, false), AttentionCode::kPacked);
  EXPECT_EQ(choose(SumOrder::kFixed, 0, true, false), AttentionCode::kPacked);
  EXPECT_EQ(choose(SumOrder::kFixed, 0, false, true), AttentionCode::kPacked);
}

TEST(AttentionChoice, DoctorsText) {
  EXPECT_THAT(attention_text(kHopper), ::testing::HasSubstr("cuDNN 9.19.0 for sequences from 512"));
  EXPECT_THAT(attention_text(kBlackwell), ::testing::HasSubstr("for equal lengths"));
  EXPECT_EQ(attention_text(kAmpere), "flash attention");
}

}  // namespace
}  // namespace antisd::inline ops
