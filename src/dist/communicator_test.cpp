#include "dist/communicator.h"

#include <atomic>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "dist/in_process.h"

namespace antisd::inline dist {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

TEST(Communicator, OneProcessKeepsWhatItHas) {
  const std::unique_ptr<Communicator> ranks = alone();
  EXPECT_EQ(ranks->rank(), 0);
  EXPECT_EQ(ranks->size(), 1);
  EXPECT_EQ(sum_over(*ranks, 0.1), 0.1);
  EXPECT_THAT(gather_values(*ranks, std::vector<double>{3, 1, 2}), ElementsAre(3, 1, 2));
  const std::vector<float> own = {1, 2};
  std::vector<float> received(2);
  ranks->exchange_parts({own.data(), received.data(), 8})->wait();
  EXPECT_THAT(received, ElementsAre(1, 2));
}

TEST(Communicator, EveryRankHearsAllInTheOrderOfTheRanks) {
  run_ranks(4, [](Communicator& ranks) {
    const int r = ranks.rank();
    EXPECT_THAT(ranks.gather(std::string(static_cast<std::size_t>(r), 'x')),
                ElementsAre("", "x", "xx", "xxx"));
    EXPECT_THAT(gather_values(ranks, std::vector<double>(r == 2 ? 2 : 0, 0.5)),
                ElementsAre(0.5, 0.5));
  });
}

TEST(Communicator, SumsAreThoseOfALoopOverTheRanks) {
  const std::vector<double> values = {1e16, 1, -1e16, 3};  // the order decides the result
  double expected = values[0];
  for (std::size_t r = 1; r < values.size(); ++r)
    expected += values[r];
  ASSERT_NE(expected, std::accumulate(values.rbegin(), values.rend(), 0.0));
  run_ranks(4, [&](Communicator& ranks) {
    EXPECT_EQ(sum_over(ranks, values[static_cast<std::size_t>(ranks.rank())]), expected);
  });
}

TEST(Communicator, PartsGoToTheirRanks) {
  constexpr int kRanks = 3;
  run_ranks(kRanks, [](Communicator& ranks) {
    const int own_rank = ranks.rank();
    std::vector<int> own, received(2 * kRanks), expected;  // two elements for each rank
    for (int to = 0; to < kRanks; ++to)
      own.insert(own.end(), {100 * own_rank + 10 * to, 100 * own_rank + 10 * to + 1});
    for (int from = 0; from < kRanks; ++from)
      expected.insert(expected.end(), {100 * from + 10 * own_rank, 100 * from + 10 * own_rank + 1});
    ranks.exchange_parts({own.data(), received.data(), 2 * sizeof(int)})->wait();
    EXPECT_THAT(received, ElementsAreArray(expected));
  });
}

TEST(Communicator, PartsAreCollectedInPlace) {
  run_ranks(3, [](Communicator& ranks) {
    std::vector<int> all(3, -1);
    int& own = all[static_cast<std::size_t>(ranks.rank())];
    own = 7 + ranks.rank();
    ranks.collect_parts({&own, all.data(), sizeof(int)})->wait();
    EXPECT_THAT(all, ElementsAre(7, 8, 9));
  });
}

TEST(Communicator, SomeOfTheRanksMeetByThemselves) {
  run_ranks(4, [](Communicator& ranks) {
    const std::vector<int> odd = {1, 3}, even = {0, 2};
    const bool is_odd = ranks.rank() % 2 == 1;
    const std::unique_ptr<Communicator> half = ranks.among(is_odd ? odd : even);
    EXPECT_EQ(half->size(), 2);
    EXPECT_EQ(half->rank(), ranks.rank() / 2);
    EXPECT_EQ(sum_over(*half, ranks.rank()), is_odd ? 4 : 2);
  });
}

TEST(Communicator, ARankThatFailsHoldsUpNobody) {
  std::atomic<int> released = 0;
  try {
    run_ranks(3, [&](Communicator& ranks) {
      if (ranks.rank() == 1) throw InputError("a row is broken");
      try {
        ranks.gather("");
      } catch (const RunError&) {
        ++released;
        throw;
      }
    });
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem(), "a row is broken");
  }
  EXPECT_EQ(released, 2);
}

TEST(Communicator, NorThoseThatWaitInAPartOrBeside) {
  std::atomic<int> released = 0;
  const auto work = [&](Communicator& ranks) {
    const auto part = ranks.among(ranks.rank() < 2 ? std::vector{0, 1} : std::vector{2});
    const auto beside = ranks.beside();
    if (ranks.rank() == 1) throw InputError("a row is broken");
    try {
      (ranks.rank() == 0 ? *part : *beside).gather("");
    } catch (const RankLost&) {
      ++released;
    }
  };
  EXPECT_THROW(run_ranks(3, work), InputError);
  EXPECT_EQ(released, 2);
}

}  // namespace
}  // namespace antisd::inline dist
