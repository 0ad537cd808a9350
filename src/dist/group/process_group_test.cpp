#include "dist/group/process_group.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <numeric>

#ifdef ANTISD_CUDA
#include <ATen/ATen.h>
#endif
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "dist/testing.h"

namespace antisd::inline dist {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_line;
using testing::expect_success;
using ::testing::HasSubstr;
using testing::RankOutcome;
using testing::run_processes;

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void expect_parts_go_to_their_ranks(Communicator& ranks, std::int64_t elements) {
  std::vector<std::int32_t> own, received, expected;
  const auto value = [](int from, int to, std::int64_t i) {
    return static_cast<std::int32_t>(1'000'000 * from + 100'000 * to + i % 99'991);
  };
  for (int r = 0; r < ranks.size(); ++r) {
    for (std::int64_t i = 0; i < elements; ++i) {
      own.push_back(value(ranks.rank(), r, i));
      expected.push_back(value(r, ranks.rank(), i));
    }
  }
  received.resize(own.size());
  ranks.exchange_parts({own.data(), received.data(), 4 * elements})->wait();
  EXPECT_TRUE(received == expected);
}

TEST(ProcessGroup, RanksTalk) {
  const auto ended = run_processes({.size = 4}, [](const Place& place) {
    std::unique_ptr<ProcessGroup> ranks;
    const double joining = seconds_of([&] { ranks = join_group(place, {}); });
    const int own = ranks->rank();
    ASSERT_EQ(ranks->size(), 4);
    ASSERT_EQ(own, place.rank);

    EXPECT_THAT(ranks->gather(std::string(static_cast<std::size_t>(own), 'x')),
                ElementsAre("", "x", "xx", "xxx"));
    const std::string zeros(5000, '\0');  // longer than what travels with its length
    EXPECT_THAT(ranks->gather(own == 2   ? zeros
                              : own == 1 ? "short"
                                         : ""),
                ElementsAre("", "short", zeros, ""));

    const std::vector<double> values = {1e16, 1, -1e16, 3};  // the order decides the result
    double expected = values[0];
    for (std::size_t r = 1; r < values.size(); ++r)
      expected += values[r];
    EXPECT_EQ(sum_over(*ranks, values[static_cast<std::size_t>(own)]), expected);

    expect_parts_go_to_their_ranks(*ranks, 3);
    std::vector<int> all(4, -1);
    all[static_cast<std::size_t>(own)] = 7 + own;
    ranks->collect_parts({&all[static_cast<std::size_t>(own)], all.data(), sizeof(int)})->wait();
    EXPECT_THAT(all, ElementsAre(7, 8, 9, 10));
    ranks->collect_parts({nullptr, nullptr, 0})->wait();

    const std::vector<int> odd = {1, 3}, even = {0, 2};
    const std::unique_ptr<Communicator> half = ranks->among(own % 2 == 1 ? odd : even);
    EXPECT_EQ(half->size(), 2);
    EXPECT_EQ(half->rank(), own / 2);
    EXPECT_EQ(sum_over(*half, own), own % 2 == 1 ? 4 : 2);
    expect_parts_go_to_their_ranks(*half, 5);

    // Several are under way at a time, and are waited for in another order.
    std::vector<std::vector<int>> sent(6, std::vector<int>(4 * 50'000)), received = sent;
    std::vector<std::unique_ptr<Transfer>> under_way;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      std::iota(sent[i].begin(), sent[i].end(), static_cast<int>(1'000'000 * i) + own);
      under_way.push_back(ranks->exchange_parts({sent[i].data(), received[i].data(), 200'000}));
    }
    EXPECT_THAT(ranks->gather("meanwhile"), ::testing::Each("meanwhile"));
    for (std::size_t i = sent.size(); i-- > 0;) {
      under_way[i]->wait();
      for (int r = 0; r < 4; ++r)
        EXPECT_EQ(received[i][static_cast<std::size_t>(50'000 * r)],
                  static_cast<int>(1'000'000 * i) + r + 50'000 * own);
    }

    const std::string hundred(100, 'a');
    const double gathers = seconds_of([&] {
      for (int i = 0; i < 200; ++i)
        ranks->gather(hundred);
    });
    if (own == 0)
      fmt::print("4 ranks joined in {:.2f} s; a gather of 100 bytes takes {:.3f} ms\n", joining,
                 gathers / 200 * 1e3);
  });
  expect_success(ended);
  std::fputs(ended[0].output.substr(ended[0].output.find("4 ranks")).c_str(), stdout);
}

// The nodes of a cluster have addresses of their own: rank 1 is on a second one.
TEST(ProcessGroup, NodesMoveLargeMessages) {
  const auto ended = run_processes({.size = 2}, [](const Place& place) {
    const bool first = place.rank == 0;
    const auto ranks = join_group(place, {.address = first ? "127.0.0.1" : "127.0.0.2"});
    std::stringstream connections;
    connections << std::ifstream("/proc/self/net/tcp").rdbuf();
    EXPECT_THAT(connections.str(), HasSubstr("0200007F:"));

    std::string large(64 << 20, 'a');  // much longer than the other's
    for (std::size_t i = 0; i < large.size(); i += 4099)
      large[i] = static_cast<char>(i % 251);
    const std::vector<std::string> all = ranks->gather(first ? "" : large);
    EXPECT_EQ(all[0], "");
    EXPECT_TRUE(all[1] == large);
    EXPECT_EQ(ranks->gather(std::string(100'000, first ? 'x' : 'y'))[1],
              std::string(100'000, 'y'));  // padded

    expect_parts_go_to_their_ranks(*ranks, 1'000'000);
    std::vector<char> own(64 << 20, 'o'), received(64 << 20);
    double exchange = 0;
    for (int i = 0; i < 3; ++i)
      exchange = seconds_of([&] {
        ranks->exchange_parts({own.data(), received.data(), 32 << 20})->wait();
      });
    const double gathers = seconds_of([&] {
      for (int i = 0; i < 200; ++i)
        ranks->gather(std::string(100, 'a'));
    });
    if (first)
      fmt::print("2 ranks: exchange of 64 MB in {:.0f} ms; a gather of 100 bytes takes {:.3f} ms\n",
                 exchange * 1e3, gathers / 200 * 1e3);
    ranks->leave();
  });
  expect_success(ended);
  std::fputs(ended[0].output.substr(ended[0].output.find("2 ranks")).c_str(), stdout);
}

#ifdef ANTISD_CUDA
void expect_gpu_memory_moves(const Place& place, GpuBackend backend) {
  const auto ranks = join_group(place, {.backend = backend});
  const auto on_gpu = at::TensorOptions(at::kInt).device(at::kCUDA);
  const int own = ranks->rank(), size = ranks->size();
  for (int round = 0; round < 3; ++round) {
    const at::Tensor sent = at::arange(size * 1000, on_gpu) + (100'000 * own + round);
    at::Tensor received = at::zeros_like(sent), all = at::zeros_like(sent);
    ranks->exchange_parts({sent.data_ptr(), received.data_ptr(), 4000, MemoryKind::kGpu})->wait();
    const auto collected =
        ranks->collect_parts({sent.data_ptr(), all.data_ptr(), 4000, MemoryKind::kGpu});
    EXPECT_EQ(std::ssize(ranks->gather("")), size);
    collected->wait();
    for (int r = 0; r < size; ++r) {
      const at::Tensor first = at::arange(1000, on_gpu) + (100'000 * r + round);
      EXPECT_TRUE(received.narrow(0, 1000 * r, 1000).equal(first + 1000 * own));
      EXPECT_TRUE(all.narrow(0, 1000 * r, 1000).equal(first));
    }
  }
}

TEST(ProcessGroup, MemoryOfAGpuByNccl) {
  expect_success(run_processes(
      {.size = 1}, [](const Place& place) { expect_gpu_memory_moves(place, GpuBackend::kNccl); }));
}

// NCCL refuses them.
TEST(ProcessGroup, MemoryOfRanksThatShareAGpu) {
  expect_success(run_processes(
      {.size = 2}, [](const Place& place) { expect_gpu_memory_moves(place, GpuBackend::kAuto); }));
}
#endif

TEST(ProcessGroup, APortInUse) {
  const testing::HeldPort held;
  const auto ended = run_processes({.size = 2, .port = held.number()},
                                   [](const Place& place) { join_group(place, {.wait_s = 2}); });
  EXPECT_THAT(error_line(ended[0]),
              HasSubstr(fmt::format("port {} of this machine, where the ranks should meet, is in "
                                    "use; choose another MASTER_PORT",
                                    held.number())));
  EXPECT_THAT(error_line(ended[1]), HasSubstr(fmt::format("rank 1 cannot reach the ranks' store at "
                                                          "127.0.0.1:{}: ",
                                                          held.number())));
}

TEST(ProcessGroup, ARankThatNeverComes) {
  // Rank 2 gives up first, so that both are there however long a start takes.
  const auto ended = run_processes({.size = 4, .ranks = {0, 2}}, [](const Place& place) {
    join_group(place, {.wait_s = place.rank == 2 ? 2.0 : 60.0});
  });
  for (const RankOutcome& rank : ended) {
    EXPECT_EQ(rank.status, 1);
    EXPECT_THAT(error_line(rank), HasSubstr("ranks 1, 3 of 4 have not come within 2 s"));
  }
}

TEST(ProcessGroup, WithoutTheFirstRankNobodyAnswers) {
  const auto ended = run_processes({.size = 2, .ranks = {1}},
                                   [](const Place& place) { join_group(place, {.wait_s = 1}); });
  EXPECT_THAT(error_line(ended[0]),
              AllOf(HasSubstr("rank 1 cannot reach the ranks' store at 127.0.0.1"),
                    HasSubstr("nobody answers there as rank 0 would, for 1 s")));
}

TEST(ProcessGroup, RanksThatDiffer) {
  const auto ended = run_processes({.size = 3}, [](const Place& place) {
    join_group(place, {.identity = fmt::format("revision 1a\nlr = 0.{}", place.rank / 2)});
  });
  for (const RankOutcome& rank : ended) {
    EXPECT_EQ(rank.status, 2);
    EXPECT_THAT(error_line(rank), HasSubstr("rank 2 was not started as rank 0 was: it has "
                                            "`lr = 0.1`, rank 0 has `lr = 0.0`"));
  }
}

TEST(ProcessGroup, TheSameRankTwice) {
  const auto ended = run_processes({.size = 3, .ranks = {0, 1, 1}},
                                   [](const Place& place) { join_group(place, {.wait_s = 30}); });
  for (const RankOutcome& rank : ended) {
    EXPECT_EQ(rank.status, 2);
    EXPECT_THAT(error_line(rank), HasSubstr("two processes claim rank 1: process "));
  }
}

}  // namespace
}  // namespace antisd::inline dist
