#include "inference/token_runs.h"

#include <algorithm>
#include <limits>

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

// The smallest longest run over all ways to cut `items` into at most `most` runs.
double best_longest(std::span<const RunItem> items, std::int64_t most) {
  if (items.empty()) return 0;
  if (most == 0) return std::numeric_limits<double>::infinity();
  double best = std::numeric_limits<double>::infinity(), first = 0;
  for (std::size_t count = 1; count <= items.size(); ++count) {
    const auto own = static_cast<double>(items[count - 1].tokens - items[count - 1].shared);
    first += own + own * static_cast<double>(items[count - 1].tokens) / 16'384;
    best = std::min(best, std::max(first, best_longest(items.subspan(count), most - 1)));
  }
  return best;
}

TEST(CutEvenly, TheLongestRunIsAsShortAsCanBe) {
  for (int seed = 0; seed < 40; ++seed) {
    std::vector<RunItem> items;
    for (int i = 0; i < 1 + seed % 9; ++i)
      items.push_back({100 + (seed * 7919 + i * 104'729) % 20'000, i % 3 == 2 ? 50 : 0});
    for (std::int64_t most = 1; most <= 5; ++most) {
      const std::vector<IndexRange> runs = cut_evenly(items, most);
      ASSERT_LE(std::ssize(runs), most);
      double longest = 0;
      std::size_t next = 0;
      for (const IndexRange& run : runs) {
        ASSERT_EQ(run.begin, next);
        ASSERT_LT(run.begin, run.end);
        next = run.end;
        longest =
            std::max(longest, best_longest(std::span(items).subspan(run.begin, run.size()), 1));
      }
      EXPECT_EQ(next, items.size());
      EXPECT_NEAR(longest, best_longest(items, most), 1e-6 * longest);
    }
  }
  EXPECT_TRUE(cut_evenly({}, 3).empty());
}

}  // namespace
}  // namespace antisd::inline inference
