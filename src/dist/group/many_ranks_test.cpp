// As many ranks as eight nodes have, all on this machine: they meet, talk, and know whom they lost.
#include <chrono>
#include <csignal>
#include <thread>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <netdb.h>

#include "core/stopwatch.h"
#include "dist/agreement.h"
#include "dist/group/process_group.h"
#include "dist/testing.h"

namespace antisd::inline dist {
namespace {

using testing::error_line;
using ::testing::HasSubstr;
using testing::RankOutcome;
using testing::run_processes;

constexpr int kManyRanks = 64, kNodeRanks = 8, kVictim = 61;

std::string message_of(int rank, std::size_t length) {
  return std::string(length + static_cast<std::size_t>(rank), static_cast<char>('0' + rank));
}

void meet_talk_and_lose_one(const Place& place) {
  Stopwatch clock;
  // They share a few cores: a healthy rank may have to wait for one for seconds.
  const auto ranks = join_group(place, {.silence_s = 6});
  const double joining = clock.lap();
  for (const std::size_t length : {0, 20'000, 300'000}) {  // short, padded, each by itself
    const std::vector<std::string> all = ranks->gather(message_of(place.rank, length));
    ASSERT_EQ(std::ssize(all), kManyRanks);
    for (int r = 0; r < kManyRanks; ++r)
      EXPECT_TRUE(all[static_cast<std::size_t>(r)] == message_of(r, length)) << r;
  }
  clock.lap();
  for (int i = 0; i < 5; ++i)
    EXPECT_FALSE(any_of(*ranks, false));
  const double gather = clock.lap() / 5;

  std::vector<int> node;
  double sum = 0;
  for (int r = 0; r < kManyRanks; ++r) {
    if (r / kNodeRanks != place.rank / kNodeRanks) continue;
    node.push_back(r);
    sum += r;
  }
  EXPECT_EQ(sum_over(*ranks->among(node), place.rank), sum);
  if (place.rank == kVictim) {
    ranks->enter("sampling of step 12");
    fmt::print("{} ranks joined in {:.2f} s; a short gather takes {:.1f} ms\n", kManyRanks, joining,
               gather * 1e3);
    std::fflush(stdout);
  }
  ranks->gather("");
  if (place.rank == kVictim) {
    // The thread that says where it is shares the cores with 63 others.
    std::this_thread::sleep_for(std::chrono::seconds(2));
    std::raise(SIGKILL);
  }
  if (!::testing::Test::HasFailure()) ranks->gather("");
}

TEST(ManyRanks, MeetTalkAndNameTheOneTheyLost) {
  const auto ended =
      run_processes({.size = kManyRanks, .limit_s = 300, .load = false}, meet_talk_and_lose_one);
  for (const RankOutcome& rank : ended) {
    if (rank.rank == kVictim) {
      EXPECT_EQ(rank.status, -SIGKILL) << rank.output;
      std::fputs(rank.output.c_str(), stdout);
      continue;
    }
    EXPECT_EQ(rank.status, 1) << "rank " << rank.rank << ": " << rank.output;
    EXPECT_THAT(error_line(rank), HasSubstr("rank 61 has been silent for 6."));
    EXPECT_THAT(error_line(rank), HasSubstr("it was in sampling of step 12"));
  }
}

// What c10d calls for every connection, found as the program's libraries find it: it asks no name
// server, nor /etc/hosts, which calls this address localhost.
TEST(ManyRanks, AddressesHaveNoNames) {
  void* const symbol = dlsym(RTLD_DEFAULT, "getnameinfo");
  ASSERT_NE(symbol, nullptr);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  char host[NI_MAXHOST] = "";
  ASSERT_EQ(reinterpret_cast<decltype(&::getnameinfo)>(symbol)(
                reinterpret_cast<const sockaddr*>(&address), sizeof(address), host, sizeof(host),
                nullptr, 0, 0),
            0);
  EXPECT_STREQ(host, "127.0.0.1");
}

}  // namespace
}  // namespace antisd::inline dist
