#include "inference/token_runs.h"

#include <gmock/gmock.h>

namespace antisd::inline inference {
namespace {

using ::testing::ElementsAre;
using Range = IndexRange;

TEST(TokenRuns, CountASharedPrefixOnceAndKeepTheOrder) {
  // Two groups of three responses of 5 tokens, after prompts of 10 and 4.
  const std::vector<RunItem> items = {{15, 0}, {15, 10}, {15, 10}, {9, 0}, {9, 4}, {9, 4}};
  EXPECT_THAT(cut_runs(items, {.most = 20}), ElementsAre(Range{0, 2}, Range{2, 3}, Range{3, 6}));
  EXPECT_THAT(cut_runs(items, {.most = 24}), ElementsAre(Range{0, 2}, Range{2, 4}, Range{4, 6}));
  EXPECT_EQ(cut_runs(items, {.most = 1}).size(), 6u);  // each by itself
  EXPECT_THAT(cut_runs(items, {.most = 1000}), ElementsAre(Range{0, 6}));
  EXPECT_TRUE(cut_runs({}, {.most = 1000}).empty());
}

TEST(TokenRuns, EndWhereMoreWouldHardlyShare) {
  const std::vector<RunItem> items = {{100, 0}, {100, 0}, {100, 20}, {100, 0}};
  // 200 tokens exceed 150, but the third item shares 20 of them: it takes 320.
  EXPECT_THAT(cut_runs(items, {.most = 1000, .enough = 150}),
              ElementsAre(Range{0, 3}, Range{3, 4}));
  EXPECT_THAT(cut_runs(items, {.most = 1000, .enough = 90}),
              ElementsAre(Range{0, 1}, Range{1, 3}, Range{3, 4}));
}

}  // namespace
}  // namespace antisd::inline inference
