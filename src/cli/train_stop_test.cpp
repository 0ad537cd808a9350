// `train` when it is told to stop, killed, or started twice.
#ifdef ANTISD_TORCH

#include <random>

#include <gmock/gmock.h>

#include "checkpoint/checkpoint.h"
#include "cli/train_testing.h"

namespace antisd {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::Outcome;
using ::testing::SizeIs;

class TrainStop : public testing::TrainTest {};

TEST_F(TrainStop, ASignalFinishesTheStepAndSaves) {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    const std::string run = fmt::format("signal{}", signal);
    const pid_t pid = start(run, "train.steps=100000 record.rollouts_every=0");
    wait_for_steps(run, 2);
    kill(pid, signal);
    EXPECT_EQ(status_of(pid), 130);
    const std::size_t done = metrics(run).size();
    EXPECT_TRUE(fs::exists(folder_ / run / "checkpoints" / fmt::format("step-{:06}", done)));
    EXPECT_EQ(Json::parse(read_file(folder_ / run / "run.json"))["exit_reason"],
              "stopped by a signal");
    const Outcome resumed =
        train(run, fmt::format("--resume train.steps={} record.rollouts_every=0", done + 1));
    EXPECT_EQ(resumed.status, 0);
    EXPECT_THAT(metrics(run), SizeIs(done + 1));
  }
}

// The rows are those of steps 1, 2, ...; a torn one would not parse.
void expect_whole_rows(const std::vector<Json>& rows) {
  std::int64_t expected = 0;
  for (const Json& row : rows)
    EXPECT_EQ(row["training/global_step"], ++expected);
}

// ANTISD_KILLS sets how often; tools/kill_test asks for many.
TEST_F(TrainStop, KilledAtAnyMomentItGoesOnAsIfNothingHadBeen) {
  const char* wanted = std::getenv("ANTISD_KILLS");
  const int kills = wanted != nullptr ? std::atoi(wanted) : 6;
  const std::string often = "checkpoint.every=2 record.rollouts_every=0 ";
  const std::string forever = often + "--resume train.steps=1000000";
  std::minstd_rand random(std::random_device{}());
  using Clock = std::chrono::steady_clock;
  double start_up_s = 0;  // until the third step of a run
  int during_start = 0;
  for (int k = 0; k < kills; ++k) {
    const std::size_t before = metrics("run").size();
    const Clock::time_point begin = Clock::now();
    const pid_t pid = start("run", forever);
    if (k == 0) {
      wait_for_steps("run", 3);
      start_up_s = std::chrono::duration<double>(Clock::now() - begin).count();
    }
    const double moment = std::uniform_real_distribution(0.0, 3 * start_up_s)(random);
    std::this_thread::sleep_until(
        begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(moment)));
    kill(pid, SIGKILL);
    ASSERT_EQ(status_of(pid), -SIGKILL) << read_file(folder_ / "err");
    // Nothing is torn, at whatever moment it came.
    const std::vector<Json> rows = metrics("run");
    expect_whole_rows(rows);
    if (rows.size() <= before) ++during_start;
    const NewestCheckpoint newest = find_newest_whole(folder_ / "run/checkpoints");
    for (const SkippedCheckpoint& skipped : newest.skipped)
      EXPECT_EQ(skipped.reason, "a save that did not finish") << skipped.path;
    if (newest.found) {
      EXPECT_LE(newest.found->step, std::ssize(rows));
    }
  }
  const std::int64_t last = std::ssize(metrics("run")) + 3;
  const std::string end = fmt::format("train.steps={}", last);
  const Outcome resumed = train("run", often + "--resume " + end);
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_THAT(metrics("run"), SizeIs(last));
  expect_whole_rows(metrics("run"));
  ASSERT_EQ(train("undisturbed", often + end).status, 0);
  EXPECT_EQ(weights("run", static_cast<int>(last)), weights("undisturbed", static_cast<int>(last)));
  EXPECT_EQ(reproducible("run"), reproducible("undisturbed"));
  fmt::print("{} kills, {} of them before a row more than the kill before had; {} steps\n", kills,
             during_start, last);
}

TEST_F(TrainStop, ASecondSignalLeavesAtOnce) {
  // A reward that hangs while a file is there: the step cannot end.
  std::string reward = read_file(folder_ / "reward.py");
  reward.insert(reward.find("    words"),
                fmt::format("    while os.path.exists({:?}): time.sleep(0.01)\n",
                            (folder_ / "hang").string()));
  write_file_atomically(folder_ / "reward.py", "import os, time\n" + reward);
  const std::string settings = "checkpoint.every=1 record.rollouts_every=0 reward.timeout_s=60 ";
  const pid_t pid = start("run", settings + "train.steps=1000000");
  wait_for_steps("run", 2);
  write_file_atomically(folder_ / "hang", "");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // into the next grade
  kill(pid, SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(waitpid(pid, nullptr, WNOHANG), 0) << "the step is not over";
  kill(pid, SIGTERM);
  EXPECT_EQ(status_of(pid), 130);
  fs::remove(folder_ / "hang");
  EXPECT_THAT(read_file(folder_ / "err"), HasSubstr("left without saving"));

  const std::int64_t done = std::ssize(metrics("run"));
  const NewestCheckpoint newest = find_newest_whole(folder_ / "run/checkpoints");
  ASSERT_TRUE(newest.found);
  EXPECT_EQ(newest.found->step, done);
  const std::string end = fmt::format("train.steps={}", done + 2);
  ASSERT_EQ(train("run", settings + "--resume " + end).status, 0);
  ASSERT_EQ(train("undisturbed", settings + end).status, 0);
  EXPECT_EQ(weights("run", static_cast<int>(done) + 2),
            weights("undisturbed", static_cast<int>(done) + 2));
}

TEST_F(TrainStop, ARunDirectoryIsForOneProcess) {
  const pid_t pid = start("run", "train.steps=100000 record.rollouts_every=0");
  wait_for_steps("run", 1);
  const Outcome second = train("run", "--resume");
  kill(pid, SIGKILL);
  status_of(pid);
  EXPECT_EQ(second.status, 2);
  EXPECT_THAT(second.err, HasSubstr("another process"));
}

}  // namespace
}  // namespace antisd

#endif
