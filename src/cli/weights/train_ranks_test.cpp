// `train` on several ranks: started by itself, by srun's variables, by torchrun; killed, stopped
// and resumed.

#include <map>
#include <random>
#include <regex>

#include <gmock/gmock.h>

#include "cli/weights/train_testing.h"
#include "core/stopwatch.h"
#include "run/checkpoint/checkpoint.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using testing::Outcome;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at)
    ++count;
  return count;
}

std::string variable_of(pid_t process, const std::string& name) {
  try {
    const std::string all = '\0' + read_file(fmt::format("/proc/{}/environ", process));
    const std::size_t at = all.find('\0' + name + "=");
    if (at == std::string::npos) return "";
    const std::size_t begin = at + name.size() + 2;
    return all.substr(begin, all.find('\0', begin) - begin);
  } catch (const Error&) {  // it has ended
    return "";
  }
}

// The ranks that a launcher has started, by rank.
std::map<int, pid_t> ranks_of(pid_t launcher) {
  std::map<int, pid_t> ranks;
  std::istringstream children(
      read_file(fmt::format("/proc/{}/task/{}/children", launcher, launcher)));
  for (pid_t child; children >> child;) {
    const std::string rank = variable_of(child, "RANK");
    if (!rank.empty()) ranks[std::stoi(rank)] = child;
  }
  return ranks;
}

class TrainRanks : public testing::TrainTest {
 protected:
  TrainRanks() : TrainTest({"train.micro_batches=3", "checkpoint.every=2"}) {}

  // Starts a run of three ranks that goes on until it is ended.
  pid_t start_three(const std::string& run, const std::string& more = "") const {
    return start(run, "train.steps=100000 record.rollouts_every=0 --processes 3 " + more);
  }

  // What is left of the launcher's ranks a moment after it has ended.
  static std::vector<pid_t> left_of(const std::map<int, pid_t>& ranks) {
    std::vector<pid_t> left;
    for (const auto& [rank, process] : ranks)
      if (!variable_of(process, "ANTISD_LAUNCH").empty()) left.push_back(process);
    return left;
  }

  void wait_for_text(const std::string& file, const std::string& text) const {
    for (int i = 0; i < 6000; ++i) {
      if (fs::exists(folder_ / file) && read_file(folder_ / file).find(text) != std::string::npos)
        return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL() << "no '" << text << "' in " << file;
  }

  // What the rank was doing, as the others tell: "sampling".
  static std::string phase_of(int rank, const std::string& message) {
    std::smatch found;
    const std::regex words(fmt::format("rank {} .*it was in ([a-z]+)", rank));
    const bool named = std::regex_search(message, found, words);
    EXPECT_TRUE(named) << message;
    return named ? found[1].str() : "no known phase";
  }

  // Goes on to two steps more than are saved, and compares with a run that nobody disturbed.
  void expect_whole(const std::string& run, const std::string& more = "") const {
    const NewestCheckpoint newest = find_newest_whole(folder_ / run / "checkpoints");
    ASSERT_TRUE(newest.found);
    const std::int64_t last = newest.found->step + 2;
    const std::string steps =
        fmt::format("train.steps={} record.rollouts_every=0 --quiet {} ", last, more);
    const Outcome resumed = train(run, steps + "--resume --processes 2");
    ASSERT_EQ(resumed.status, 0) << resumed.err;
    const std::string whole = run + "-undisturbed";
    ASSERT_EQ(train(whole, steps).status, 0);
    EXPECT_TRUE(weights(run, static_cast<int>(last)) == weights(whole, static_cast<int>(last)));
    EXPECT_EQ(reproducible(run), reproducible(whole));
  }
};

TEST_F(TrainRanks, GiveTheFilesOfOneProcess) {
  ASSERT_EQ(train("one").status, 0);
  for (const char* shard : {"none", "optimizer", "gradients", "weights", "auto"}) {
    const std::string run = fmt::format("three-{}", shard);
    const Outcome outcome = train(run, fmt::format("dist.shard={} --processes 3", shard));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("rank 0 of 3 (--processes)"));
    EXPECT_THAT(outcome.err, ::testing::Not(HasSubstr("rank 1: ")));  // only rank 0 talks
    EXPECT_TRUE(weights(run, 6) == weights("one", 6)) << shard;
    EXPECT_EQ(reproducible(run), reproducible("one"));
    EXPECT_EQ(read_file(folder_ / run / "rollouts/step-000005.jsonl"),
              read_file(folder_ / "one/rollouts/step-000005.jsonl"));
  }
}

TEST_F(TrainRanks, OfSrunFindEachOther) {
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    const std::map<std::string, std::string> variables = {
        {"SLURM_PROCID", std::to_string(rank)},
        {"SLURM_LOCALID", std::to_string(rank)},
        {"SLURM_NODEID", "0"},
        {"SLURM_JOB_ID", std::to_string(getpid())},
        {"SLURM_STEP_ID", "0"},
        {"SLURM_STEP_NUM_TASKS", "2"},
        {"SLURM_STEP_NODELIST", "localhost"},
        {"SLURM_STEP_TASKS_PER_NODE", "2"}};
    for (const auto& [name, value] : variables)
      setenv(name.c_str(), value.c_str(), 1);
    ranks.push_back(start("slurm"));
    for (const auto& [name, value] : variables)
      unsetenv(name.c_str());
  }
  for (const pid_t rank : ranks)
    EXPECT_EQ(status_of(rank), 0);
  ASSERT_EQ(train("one").status, 0);
  EXPECT_TRUE(weights("slurm", 6) == weights("one", 6));
}

// torchrun of the wheel that we link.
TEST_F(TrainRanks, OfTorchrunFindEachOther) {
  const fs::path repository = ANTISD_SOURCE_DIR;
  if (!fs::exists(repository / ".deps/reference")) GTEST_SKIP() << "needs `make references`";
  const auto torchrun = [&](const std::string& arguments) {
    return shell(fmt::format("'{}' --standalone {} >out 2>err",
                             (repository / "tools/torchrun").string(), arguments));
  };
  const std::string run = "train run.toml record.dir=run --threads 1 --device cpu";
  ASSERT_EQ(torchrun("--nproc-per-node 2 --no-python antisd " + run), 0)
      << read_file(folder_ / "err");
  EXPECT_THAT(read_file(folder_ / "err"), HasSubstr("rank 0 of 2 (torchrun)"));
  ASSERT_EQ(train("one").status, 0);
  EXPECT_TRUE(weights("run", 6) == weights("one", 6));

  // It starts all ranks again after one has failed: here two have done the first steps, and three
  // go on.
  write("first-fails", R"(#!/bin/sh
case $TORCHELASTIC_RESTART_COUNT in
  0) antisd "$@" train.steps=3 && exit 1 ;;
  *) exec antisd "$@" --resume ;;
esac
)");
  ASSERT_EQ(shell("chmod +x first-fails"), 0);
  const std::string again = "train run.toml record.dir=again --threads 1 --device cpu";
  ASSERT_EQ(torchrun("--nproc-per-node 2 --max-restarts 1 --no-python ./first-fails " + again), 0)
      << read_file(folder_ / "err");
  EXPECT_TRUE(weights("again", 6) == weights("one", 6));
}

TEST_F(TrainRanks, OneThatIsKilledOrStoppedIsNamedAndEndsAll) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    for (const int victim : {0, 1}) {
      const std::string run = fmt::format("signal{}-rank{}", signal, victim);
      const pid_t launcher = start_three(run, "dist.silence_s=2");
      wait_for_steps(run, 3);
      const std::map<int, pid_t> ranks = ranks_of(launcher);
      ASSERT_EQ(ranks.size(), 3u);
      kill(ranks.at(victim), signal);
      EXPECT_EQ(status_of(launcher), 1);
      EXPECT_THAT(left_of(ranks), IsEmpty());
      const std::string message = read_file(folder_ / "err");
      EXPECT_THAT(message,
                  AllOf(HasSubstr(fmt::format("rank {} ", victim)), HasSubstr("it was in "),
                        HasSubstr(" of step "), HasSubstr("--resume goes on from it")));
      expect_whole(run);
    }
  }
}

TEST_F(TrainRanks, AStopSavesAndAnotherNumberGoesOn) {
  const pid_t launcher = start_three("run", "dist.shard=optimizer");
  wait_for_steps("run", 3);
  kill(launcher, SIGTERM);
  EXPECT_EQ(status_of(launcher), 130);
  EXPECT_EQ(Json::parse(read_file(folder_ / "run/run.json"))["exit_reason"], "stopped by a signal");
  const NewestCheckpoint newest = find_newest_whole(folder_ / "run/checkpoints");
  ASSERT_TRUE(newest.found);
  EXPECT_EQ(newest.found->step, std::ssize(metrics("run")));
  expect_whole("run");
}

TEST_F(TrainRanks, ABadConfigurationIsToldOnce) {
  const Outcome outcome = train("run", "data.train=nowhere.jsonl --processes 3");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(count_of(outcome.err, "nowhere.jsonl"), 1u) << outcome.err;
}

// One rank of a run was started by hand with another seed.
TEST_F(TrainRanks, RanksThatDifferAreRefused) {
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    const std::map<std::string, std::string> variables = {
        {"RANK", std::to_string(rank)},
        {"WORLD_SIZE", "2"},
        {"LOCAL_RANK", std::to_string(rank)},
        {"LOCAL_WORLD_SIZE", "2"},
        {"MASTER_ADDR", "127.0.0.1"},
        {"MASTER_PORT", std::to_string(20'000 + getpid() % 10'000)}};
    for (const auto& [name, value] : variables)
      setenv(name.c_str(), value.c_str(), 1);
    ranks.push_back(start("run", fmt::format("train.seed={}", 7 + rank)));
    for (const auto& [name, value] : variables)
      unsetenv(name.c_str());
  }
  for (const pid_t rank : ranks)
    EXPECT_EQ(status_of(rank), 2);
  EXPECT_THAT(read_file(folder_ / "err"),
              AllOf(HasSubstr("rank 1 was not started as rank 0 was"), HasSubstr("seed = 8")));
}

// Any rank, at any moment. ANTISD_RANK_KILLS of them (`make night`), a few in the test suite.
TEST_F(TrainRanks, KilledAtAnyMomentTheyGoOnAsIfNothingHadBeen) {
  const char* const asked = std::getenv("ANTISD_RANK_KILLS");
  const int kills = asked != nullptr ? std::atoi(asked) : 3;
  const std::string evaluated =
      "eval.every=3 'eval.benches=[\"countdown:3:held-out:4\"]' eval.max_sequence_tokens=24 ";
  constexpr const char* kShards[] = {"gradients", "weights", "none"};
  std::mt19937 random(17);
  std::int64_t saved = 0;
  double longest = 0;
  std::map<std::string, int> phases;
  for (int i = 0; i < kills; ++i) {
    fs::remove(folder_ / "err");
    const pid_t launcher = start_three(
        "run",
        fmt::format("dist.silence_s=2 dist.shard={} --resume {}", kShards[i % 3], evaluated));
    wait_for_text("err", "rank 0 of 3 ");  // all have met
    std::map<int, pid_t> ranks = ranks_of(launcher);
    ASSERT_EQ(ranks.size(), 3u);
    if (i == 0) wait_for_steps("run", 3);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 4000));
    const int victim = static_cast<int>(random() % 3);
    kill(ranks.at(victim), random() % 2 == 0 ? SIGKILL : SIGSTOP);
    Stopwatch clock;
    const std::map<int, pid_t> all = ranks;
    ranks.erase(victim);
    while (!left_of(ranks).empty())
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    longest = std::max(longest, clock.lap());
    EXPECT_EQ(status_of(launcher), 1);
    EXPECT_THAT(left_of(all), IsEmpty());
    ++phases[phase_of(victim, read_file(folder_ / "err"))];
    const NewestCheckpoint newest = find_newest_whole(folder_ / "run/checkpoints");
    ASSERT_TRUE(newest.found);
    EXPECT_GE(newest.found->step, saved);
    saved = newest.found->step;
  }
  fmt::print("{} kills over {} steps; the others had ended after {:.1f} s at most, silence_s = 2\n",
             kills, saved, longest);
  for (const auto& [phase, count] : phases)
    fmt::print("{:4} in {}\n", count, phase);
  expect_whole("run", evaluated);
}

}  // namespace
}  // namespace antisd::inline cli
