#include "dist/rendezvous.h"

#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace antisd::inline dist {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

// What meet() says to each: "together", or the kind and text of its error.
std::vector<std::string> meet_all(MemoryStore& store, const std::vector<Attendance>& all) {
  std::vector<std::string> outcomes(all.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < all.size(); ++i) {
    threads.emplace_back([&, i] {
      const std::unique_ptr<Store> connection = store.clone();
      try {
        meet(*connection, all[i]);
        outcomes[i] = "together";
      } catch (const InputError& error) {
        outcomes[i] = "input " + error.message();
      } catch (const RunError& error) {
        outcomes[i] = "run " + error.message();
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  return outcomes;
}

Attendance rank_of(int rank, int size, const std::string& identity = "", double wait_s = 60) {
  return {rank, size, identity, wait_s, /*holds_store=*/rank == 0};
}

TEST(Rendezvous, RanksThatAreAlikeBegin) {
  MemoryStore store;
  EXPECT_THAT(
      meet_all(store, {rank_of(2, 3, "a\nb"), rank_of(0, 3, "a\nb"), rank_of(1, 3, "a\nb")}),
      Each("together"));
}

TEST(Rendezvous, TheFirstDifferenceIsNamedOnAllRanks) {
  MemoryStore store;
  const std::string usual = "revision 1a2b\nlr = 0.001\nseed = 1";
  const std::string other = "revision 1a2b\nlr = 0.002\nseed = 2";
  EXPECT_THAT(meet_all(store, {rank_of(0, 4, usual), rank_of(1, 4, usual), rank_of(2, 4, other),
                               rank_of(3, 4, "")}),
              Each(AllOf(HasSubstr("input rank 2 was not started as rank 0 was: it has "
                                   "`lr = 0.002`, rank 0 has `lr = 0.001`"),
                         HasSubstr("same program, configuration"))));
  MemoryStore longer;
  EXPECT_THAT(meet_all(longer, {rank_of(0, 2, "a"), rank_of(1, 2, "a\nb")}),
              Each(HasSubstr("it has `b`, rank 0 has `nothing`")));
}

TEST(Rendezvous, RanksThatDoNotComeAreNamed) {
  MemoryStore store;
  EXPECT_THAT(meet_all(store, {rank_of(0, 5, "", 1), rank_of(2, 5)}),
              Each(HasSubstr("run ranks 1, 3, 4 of 5 have not come within 1 s")));
  MemoryStore another;
  EXPECT_THAT(meet_all(another, {rank_of(0, 3, "", 1), rank_of(1, 3)}),
              Each(HasSubstr("run rank 2 of 3 has not come")));
}

TEST(Rendezvous, WorldsOfDifferentSizesDoNotMix) {
  MemoryStore store;
  EXPECT_THAT(meet_all(store, {rank_of(0, 3), rank_of(1, 2)}),
              Each(HasSubstr("input rank 0 was started as one of 3 ranks, rank 1 as one of 2")));
}

TEST(Rendezvous, OneRankIsForOneProcess) {
  MemoryStore store;
  const std::vector<std::string> outcomes =
      meet_all(store, {rank_of(0, 3), rank_of(1, 3), rank_of(1, 3)});
  EXPECT_THAT(outcomes, Each(HasSubstr("input two processes claim rank 1: process ")));

  // A run that has begun is not disturbed.
  MemoryStore begun;
  EXPECT_THAT(meet_all(begun, {rank_of(0, 2), rank_of(1, 2)}), Each("together"));
  EXPECT_THAT(meet_all(begun, {rank_of(1, 4)}),
              Each(AllOf(HasSubstr("two processes claim rank 1"), HasSubstr("(one of 2 ranks)"),
                         HasSubstr("(one of 4 ranks)"), HasSubstr("--rdzv-id"))));
  EXPECT_EQ(begun.find("refused"), std::nullopt);
}

}  // namespace
}  // namespace antisd::inline dist
