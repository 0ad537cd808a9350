// Ranks that die, stop, fail or end too early, and what the others say.
#include <csignal>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "dist/agreement.h"
#include "dist/group/process_group.h"
#include "dist/testing.h"

namespace antisd::inline dist {
namespace {

using testing::error_line;
using ::testing::HasSubstr;
using testing::RankOutcome;
using testing::run_processes;

constexpr double kSilence = 2;      // seconds
constexpr double kToBeHeard = 2.5;  // a phase, on a busy machine

void sleep_s(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// Ends when a rank is lost, as a command does: memory that is under way is not freed before.
std::unique_ptr<ProcessGroup> join_as_a_program(const Place& place) {
  return join_group(place, {.silence_s = kSilence, .on_loss = [](const RunError& error) {
                              std::fprintf(stderr, "error: %s\n", error.what());
                              _exit(error.exit_status());
                            }});
}

// Every rank but the victim has ended with status 1 and that text; prints how long after it.
void expect_named(const std::vector<RankOutcome>& ended, int victim, const std::string& text) {
  for (const RankOutcome& rank : ended) {
    if (rank.rank == victim) continue;
    EXPECT_EQ(rank.status, 1) << "rank " << rank.rank << ": " << rank.output;
    EXPECT_THAT(error_line(rank), HasSubstr(text)) << "rank " << rank.rank;
    fmt::print("rank {} ended {:.1f} s after rank {}\n", rank.rank,
               rank.ended_s - ended[static_cast<std::size_t>(victim)].ended_s, victim);
  }
}

TEST(LostRank, AKilledRankIsNamed) {
  const auto ended = run_processes({.size = 3}, [](const Place& place) {
    const auto ranks = join_group(place, {.silence_s = kSilence});
    if (place.rank == 2) {
      ranks->enter("sampling of step 12");
      sleep_s(kToBeHeard);
      std::raise(SIGKILL);
    }
    ranks->gather("");
  });
  EXPECT_EQ(ended[2].status, -SIGKILL);
  expect_named(ended, 2, "it was in sampling of step 12");
  EXPECT_THAT(error_line(ended[0]), HasSubstr("rank 2 has been silent for 2."));
}

TEST(LostRank, AStoppedRankIsNamed) {
  const auto ended = run_processes({.size = 3}, [](const Place& place) {
    const auto ranks = join_as_a_program(place);
    if (place.rank == 1) {
      ranks->enter("scoring of step 3");
      sleep_s(kToBeHeard);
      std::raise(SIGSTOP);
    }
    const std::vector<char> own(30 << 20);
    std::vector<char> received(30 << 20);
    const auto transfer = ranks->exchange_parts({own.data(), received.data(), 10 << 20});
    transfer->wait();
  });
  expect_named(ended, 1, "rank 1 has been silent for 2.");
  EXPECT_THAT(error_line(ended[0]), HasSubstr("it was in scoring of step 3"));
}

// As ranks that divide the weights fetch a layer from each other: one dies with the fetch under
// way.
TEST(LostRank, OneThatDiesInAGatherOfMemoryIsNamed) {
  const auto ended = run_processes({.size = 3}, [](const Place& place) {
    const auto ranks = join_as_a_program(place);
    ranks->enter("update of step 7");
    sleep_s(kToBeHeard);
    const std::vector<char> own(20 << 20);
    std::vector<char> received(60 << 20);
    for (int layer = 0; layer < 2; ++layer) {
      const auto transfer = ranks->collect_parts({own.data(), received.data(), 20 << 20});
      if (layer == 1 && place.rank == 1) std::raise(SIGKILL);
      transfer->wait();
    }
    ranks->gather("");
  });
  EXPECT_EQ(ended[1].status, -SIGKILL);
  expect_named(ended, 1, "rank 1 has been silent for 2.");
  EXPECT_THAT(error_line(ended[0]), HasSubstr("it was in update of step 7"));
}

// Rank 0 holds the store, so that it takes the others' messages along. Rank 2 computes.
void lose_rank_0(const Place& place, int signal) {
  const auto ranks = join_as_a_program(place);
  ranks->enter(fmt::format("saving by rank {}", place.rank));
  sleep_s(kToBeHeard);
  if (place.rank == 0) std::raise(signal);
  if (place.rank == 1) ranks->gather("");
  if (place.rank == 2) sleep_s(50);
}

TEST(LostRank, TheFirstRankKilled) {
  expect_named(run_processes({.size = 3}, [](const Place& place) { lose_rank_0(place, SIGKILL); }),
               0, "rank 0 has died; it was in saving by rank 0");
}

TEST(LostRank, TheFirstRankStopped) {
  expect_named(run_processes({.size = 3}, [](const Place& place) { lose_rank_0(place, SIGSTOP); }),
               0, "it was in saving by rank 0");
}

TEST(LostRank, ARankThatFailsTellsTheOthersWhy) {
  const auto ended = run_processes({.size = 3}, [&](const Place& place) {
    const auto ranks = join_group(place, {.silence_s = 30});
    try {
      if (place.rank == 0) throw RunError("no memory for 3 GB");
      ranks->gather("");
    } catch (const RunError& error) {
      ranks->fail(error.message());
      throw;
    }
  });
  expect_named(ended, 0, "rank 0 failed: no memory for 3 GB");
  EXPECT_EQ(error_line(ended[0]), "error: no memory for 3 GB\n");
}

TEST(LostRank, AnErrorOfAllEndsAll) {
  const auto ended = run_processes({.size = 3}, [](const Place& place) {
    const auto ranks = join_group(place, {});
    agree(*ranks, [&] {
      if (place.rank == 1) throw InputError("a row is broken");
    });
  });
  for (const RankOutcome& rank : ended) {
    EXPECT_EQ(rank.status, 2);
    EXPECT_THAT(error_line(rank), HasSubstr("a row is broken"));
  }
}

TEST(LostRank, ARankThatEndsEarlyIsMissed) {
  const auto ended = run_processes({.size = 2}, [](const Place& place) {
    const auto ranks = join_group(place, {.silence_s = kSilence});
    if (place.rank == 0) ranks->gather("");
    ranks->leave();
  });
  for (const RankOutcome& rank : ended) {
    EXPECT_EQ(rank.status, 1);
    EXPECT_THAT(error_line(rank), HasSubstr("rank 1 has ended its run, but rank 0 waits for it"));
  }
}

}  // namespace
}  // namespace antisd::inline dist
