#include "data/prompt_stream.h"

#include <map>
#include <set>

#include <gmock/gmock.h>

#include "core/error.h"
#include "core/testing.h"

namespace antisd::inline data {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

std::vector<std::size_t> take(PromptStream& stream, std::size_t total, std::size_t batch) {
  std::vector<std::size_t> all;
  while (all.size() < total) {
    const auto part = stream.next(std::min(batch, total - all.size()));
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(PromptStream, EveryEpochIsAPermutation) {
  for (const std::size_t size : {1u, 2u, 7u, 100u}) {
    for (const std::size_t batch : {1u, 3u, 64u}) {
      PromptStream stream(size, "f", {.seed = 5});
      const auto all = take(stream, size * 6, batch);
      std::set<std::vector<std::size_t>> orders;
      for (std::size_t epoch = 0; epoch < 6; ++epoch) {
        const std::vector<std::size_t> order(all.begin() + epoch * size,
                                             all.begin() + (epoch + 1) * size);
        const std::set<std::size_t> distinct(order.begin(), order.end());
        ASSERT_EQ(distinct.size(), size);
        ASSERT_EQ(*distinct.rbegin(), size - 1);
        orders.insert(order);
      }
      if (size == 100) {
        EXPECT_EQ(orders.size(), 6u);  // epochs differ
      }
    }
  }
}

TEST(PromptStream, BatchesAreFullAcrossTheBoundary) {
  PromptStream stream(5, "f", {.seed = 1});
  EXPECT_EQ(stream.next(4).size(), 4u);
  EXPECT_EQ(stream.next(4).size(), 4u);
  EXPECT_EQ(stream.epoch(), 1u);
  EXPECT_EQ(stream.position(), 3u);
  EXPECT_EQ(stream.given(), 8u);
  EXPECT_EQ(stream.next(12).size(), 12u);  // more than an epoch at once
  EXPECT_EQ(stream.epoch(), 4u);
  EXPECT_EQ(stream.position(), 0u);
  EXPECT_TRUE(stream.next(0).empty());
}

TEST(PromptStream, BatchSizeDoesNotChangeTheOrder) {
  PromptStream one(23, "f", {.seed = 9}), other(23, "f", {.seed = 9});
  EXPECT_EQ(take(one, 100, 1), take(other, 100, 17));
}

TEST(PromptStream, FileOrderWithoutShuffle) {
  PromptStream stream(3, "f", {.seed = 9, .shuffle = false});
  EXPECT_THAT(stream.next(7), ElementsAre(0, 1, 2, 0, 1, 2, 0));
}

TEST(PromptStream, SeedsDiffer) {
  PromptStream one(50, "f", {.seed = 1}), other(50, "f", {.seed = 2});
  EXPECT_NE(one.next(50), other.next(50));
}

TEST(PromptStream, ResumesExactlyAnywhere) {
  constexpr std::size_t kSize = 11, kTotal = 40;
  for (std::size_t stop = 0; stop <= kTotal; ++stop) {
    PromptStream whole(kSize, "f", {.seed = 3});
    const auto expected = take(whole, kTotal, 4);
    PromptStream first(kSize, "f", {.seed = 3});
    auto all = take(first, stop, 4);
    // Through text, as a checkpoint does it.
    const Json saved = parse_json(to_json_line(first.state()), "state");
    PromptStream second(kSize, "f", {.seed = 3});
    second.next(5);  // restore() discards this
    second.restore(saved);
    const auto rest = take(second, kTotal - stop, 4);
    all.insert(all.end(), rest.begin(), rest.end());
    ASSERT_EQ(all, expected) << "stopped at " << stop;
    ASSERT_EQ(second.state(), whole.state());
  }
}

TEST(PromptStream, ShufflingIsUnbiased) {
  // All 24 orders of 4 items over 24,000 epochs: chi-square with 23 degrees of freedom; 49.7 is its
  // 99.9 % point. The numbers are fixed by the seed, so this cannot fail by chance later.
  constexpr int kEpochs = 24'000;
  PromptStream stream(4, "f", {.seed = 1234});
  std::map<std::vector<std::size_t>, int> counts;
  for (int epoch = 0; epoch < kEpochs; ++epoch)
    ++counts[stream.next(4)];
  ASSERT_EQ(counts.size(), 24u);
  double chi_square = 0.0;
  for (const auto& [order, count] : counts) {
    const double deviation = count - kEpochs / 24.0;
    chi_square += deviation * deviation / (kEpochs / 24.0);
  }
  EXPECT_LT(chi_square, 49.7);
}

TEST(PromptStream, PlacesAreUniform) {
  // Where each of 10 items lands, over 10,000 epochs: 81 degrees of freedom, 99.9 % point 124.8.
  constexpr int kSize = 10, kEpochs = 10'000;
  PromptStream stream(kSize, "f", {.seed = 77});
  std::vector<std::vector<int>> counts(kSize, std::vector<int>(kSize));
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const auto order = stream.next(kSize);
    for (int place = 0; place < kSize; ++place)
      ++counts[order[place]][place];
  }
  double chi_square = 0.0;
  for (const auto& row : counts) {
    for (const int count : row)
      chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
  }
  EXPECT_LT(chi_square, 124.8);
}

TEST(PromptStream, SaysWhatChanged) {
  PromptStream stream(10, "aaaa", {.seed = 4});
  const Json good = stream.state();
  const auto with = [&](const char* key, Json value) {
    Json state = good;
    state[key] = std::move(value);
    return error_of([&] { stream.restore(state); });
  };
  EXPECT_THAT(with("size", 12), HasSubstr("had 12 problems, now it has 10"));
  EXPECT_THAT(with("fingerprint", "bbbb"), HasSubstr("other content"));
  EXPECT_THAT(with("seed", 5), HasSubstr("set train.seed = 5"));
  EXPECT_THAT(with("shuffle", false), HasSubstr("set data.shuffle = false"));
  EXPECT_THAT(with("position", 10), HasSubstr("item 10 of 10"));
  EXPECT_THAT(with("epoch", std::uint64_t{1} << 40), HasSubstr("epoch"));
  for (const Json& bad : {Json(-1), Json("x"), Json(nullptr), Json(1.5)}) {
    EXPECT_THAT(with("position", bad), HasSubstr("no integer 'position'"));
    EXPECT_THAT(with("size", bad), HasSubstr("no integer 'size'"));
  }
  EXPECT_THAT(error_of([&] { stream.restore(Json::array()); }), HasSubstr("not an object"));
  EXPECT_THAT(error_of([&] { stream.restore(Json::object()); }), HasSubstr("no integer"));
  EXPECT_EQ(stream.state(), good);  // a rejected state changes nothing
  EXPECT_THAT(error_of([] { PromptStream(0, "f"); }), HasSubstr("empty"));
}

}  // namespace
}  // namespace antisd::inline data
