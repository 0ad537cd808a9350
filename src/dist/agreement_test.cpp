#include "dist/agreement.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/not_finite.h"
#include "dist/in_process.h"

namespace antisd::inline dist {
namespace {

// What agree() throws on each of four ranks, as "kind text".
std::vector<std::string> outcomes(const std::function<void(int rank)>& work) {
  std::vector<std::string> found(4);
  run_ranks(4, [&](Communicator& ranks) {
    std::string& own = found[static_cast<std::size_t>(ranks.rank())];
    try {
      agree(ranks, [&] { work(ranks.rank()); });
      own = "nothing";
    } catch (const NotFinite& error) {
      own = "not finite " + error.message();
    } catch (const InputError& error) {
      own = "input " + error.message();
    } catch (const RunError& error) {
      own = "run " + error.message();
    }
  });
  return found;
}

TEST(Agreement, WithoutAnErrorEveryRankGoesOnWithWhatAllFound) {
  run_ranks(3, [](Communicator& ranks) {
    const std::vector<std::string> all =
        gather_agreed(ranks, [&] { return std::string(1, static_cast<char>('a' + ranks.rank())); });
    EXPECT_THAT(all, ::testing::ElementsAre("a", "b", "c"));
  });
}

TEST(Agreement, WhatOneRankThrowsAllThrow) {
  const auto fails = [](int rank) {
    if (rank == 2) throw RunError("no grade", {.where = "reward", .remedy = "fix the grader"});
  };
  const std::vector<std::string> found = outcomes(fails);
  EXPECT_EQ(
      found[2],
      "run " + RunError("no grade", {.where = "reward", .remedy = "fix the grader"}).message());
  const std::string elsewhere =
      "run " +
      RunError("rank 2: no grade", {.where = "reward", .remedy = "fix the grader"}).message();
  for (const std::size_t rank : {0, 1, 3})
    EXPECT_EQ(found[rank], elsewhere);
}

TEST(Agreement, TheKindOfTheErrorIsKept) {
  for (const std::string& text : outcomes([](int rank) {
         if (rank == 0) throw NotFinite("NaN");
       }))
    EXPECT_THAT(text, ::testing::StartsWith("not finite "));
  for (const std::string& text : outcomes([](int rank) {
         if (rank == 3) throw InputError("bad row");
       }))
    EXPECT_THAT(text, ::testing::StartsWith("input "));
}

TEST(Agreement, OfSeveralErrorsTheFirstRanksCounts) {
  const std::vector<std::string> found = outcomes([](int rank) {
    if (rank == 1) throw InputError("first");
    if (rank == 3) throw RunError("second");
  });
  for (const std::string& text : found)
    EXPECT_THAT(text,
                ::testing::AllOf(::testing::StartsWith("input "), ::testing::HasSubstr("first")));
}

TEST(Agreement, TheFirstRankWorksAndTheOthersHelpWhenItCalls) {
  std::vector<std::vector<double>> sums(3);
  run_ranks(3, [&](Communicator& ranks) {
    std::vector<double>& own = sums[static_cast<std::size_t>(ranks.rank())];
    const auto add = [&] { own.push_back(sum_over(ranks, ranks.rank() + 1.0)); };
    lead(
        ranks,
        [&](const std::function<void()>& call) {
          call();
          add();
          call();
          add();
        },
        add);
    EXPECT_EQ(any_of(ranks, ranks.rank() == 2), true);
    EXPECT_EQ(any_of(ranks, false), false);
    EXPECT_EQ(first_says(ranks, fmt::format("{}", ranks.rank())), "0");
  });
  for (const std::vector<double>& own : sums)
    EXPECT_THAT(own, ::testing::ElementsAre(6, 6));
}

TEST(Agreement, WhatTheFirstRanksWorkThrowsAllThrow) {
  std::vector<std::string> found(3);
  run_ranks(3, [&](Communicator& ranks) {
    try {
      lead(
          ranks,
          [&](const std::function<void()>& call) {
            call();
            sum_over(ranks, 1);
            throw NotFinite("a moment is NaN");
          },
          [&] { sum_over(ranks, 1); });
    } catch (const NotFinite& error) {
      found[static_cast<std::size_t>(ranks.rank())] = error.problem();
    }
  });
  EXPECT_THAT(found, ::testing::ElementsAre("a moment is NaN", "rank 0: a moment is NaN",
                                            "rank 0: a moment is NaN"));
}

}  // namespace
}  // namespace antisd::inline dist
