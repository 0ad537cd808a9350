// `train` when it is stopped, killed, or started twice.

#include <fstream>
#include <random>

#include <gmock/gmock.h>
#include <sys/prctl.h>

#include "cli/command.h"
#include "cli/tensor_half.h"
#include "cli/weights/train_testing.h"
#include "run/checkpoint/checkpoint.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::Outcome;
using ::testing::SizeIs;

class TrainStop : public testing::TrainTest {};

TEST_F(TrainStop, ASignalFinishesTheStepAndSaves) {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) {
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

TEST_F(TrainStop, AHangUpThatWasIgnoredStaysIgnored) {  // nohup
  const auto before = std::signal(SIGHUP, SIG_IGN);
  const pid_t pid = start("run", "train.steps=100000 record.rollouts_every=0");
  std::signal(SIGHUP, before);
  wait_for_steps("run", 1);
  kill(pid, SIGHUP);
  const std::size_t done = metrics("run").size();
  wait_for_steps("run", done + 3);
  kill(pid, SIGTERM);
  EXPECT_EQ(status_of(pid), 130);
  EXPECT_EQ(Json::parse(read_file(folder_ / "run/run.json"))["exit_reason"], "stopped by a signal");
}

// Kills one run repeatedly and resumes it each time. The program is a fork of this process, not a
// new one: its libraries are loaded, so kills are cheap and hit steps and saves.
class TrainKills : public TrainStop {
 protected:
  pid_t start_copy(const std::string& run_folder, std::vector<std::string> more) const {
    std::vector<std::string> words = {"antisd",    "train", "run.toml", "record.dir=" + run_folder,
                                      "--threads", "1",     "--device", "cpu",
                                      "--resume"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<const char*> arguments;
    for (const std::string& word : words)
      arguments.push_back(word.c_str());
    const pid_t pid = fork();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // otherwise it would train for ever
    if (chdir(folder_.path().c_str()) != 0 || freopen("err", "w", stderr) == nullptr) _exit(127);
    use_tensor_half(*antisd_tensor_half());
    _exit(run_command_line(static_cast<int>(arguments.size()), arguments.data()));
  }

  // The step of the last row; the rows read before it must be complete and in order. At most
  // 100,000 bytes are read, since a long run is killed often. SIGKILL ends a write() between two
  // pages of memory, so what is left of one more row may follow; a resumed run cuts it off.
  std::int64_t last_row(const std::string& run) {
    std::ifstream file(folder_ / run / "metrics.jsonl", std::ios::binary | std::ios::ate);
    if (!file) return 0;
    const std::streamoff size = file.tellg(), begin = std::max<std::streamoff>(0, size - 100'000);
    std::string text(static_cast<std::size_t>(size - begin), '\0');
    file.seekg(begin).read(text.data(), std::ssize(text));
    if (begin > 0) text.erase(0, text.find('\n') + 1);
    if (!text.empty() && text.back() != '\n') {
      EXPECT_EQ(size % sysconf(_SC_PAGESIZE), 0) << "a row that was torn within a page";
      text.erase(text.rfind('\n') + 1);
      ++torn_rows_;
    }
    std::int64_t last = 0;
    for (const Json& row : testing::parse_rows(text)) {
      const std::int64_t step = row["training/global_step"].get<std::int64_t>();
      if (last > 0 || begin == 0) {
        EXPECT_EQ(step, last + 1);
      }
      last = step;
    }
    return last;
  }

  void kill_often(int kills, const std::vector<std::string>& more = {});

  int torn_rows_ = 0;
};

void TrainKills::kill_often(int kills, const std::vector<std::string>& more) {
  std::vector<std::string> often = {"checkpoint.every=2", "record.rollouts_every=0",
                                    "reward.kind=countdown"};
  often.insert(often.end(), more.begin(), more.end());
  std::vector<std::string> forever = often;
  forever.emplace_back("train.steps=1000000");
  std::minstd_rand random(std::random_device{}());
  using Clock = std::chrono::steady_clock;
  double three_steps_s = 0;  // including the start
  int before_a_row = 0, in_a_save = 0;
  std::int64_t before = 0;
  for (int k = 0; k < kills; ++k) {
    const Clock::time_point begin = Clock::now();
    const pid_t pid = start_copy("run", forever);
    if (k == 0) {
      wait_for_steps("run", 3);
      three_steps_s = std::chrono::duration<double>(Clock::now() - begin).count();
    }
    const double moment = std::uniform_real_distribution(0.0, 3 * three_steps_s)(random);
    std::this_thread::sleep_until(
        begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(moment)));
    kill(pid, SIGKILL);
    ASSERT_EQ(status_of(pid), -SIGKILL) << read_file(folder_ / "err");
    const std::int64_t last = last_row("run");
    before_a_row += last <= std::exchange(before, last);
    const NewestCheckpoint newest = find_newest_whole(folder_ / "run/checkpoints");
    in_a_save += !newest.skipped.empty();
    for (const SkippedCheckpoint& skipped : newest.skipped)
      EXPECT_EQ(skipped.reason, "a save that did not finish") << skipped.path;
    if (newest.found) {
      EXPECT_LE(newest.found->step, last);
    }
    ASSERT_FALSE(HasFailure()) << "kill " << k + 1;
  }
  const std::int64_t last = before + 3;
  const std::string end = fmt::format("{} train.steps={}", fmt::join(often, " "), last);
  const Outcome resumed = train("run", "--resume " + end);
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  ASSERT_EQ(train("undisturbed", end).status, 0);
  EXPECT_EQ(weights("run", static_cast<int>(last)), weights("undisturbed", static_cast<int>(last)));
  const std::vector<Json> rows = reproducible("run");
  EXPECT_THAT(rows, SizeIs(last));
  EXPECT_EQ(rows, reproducible("undisturbed"));
  fmt::print(
      "{} kills: {} before a new row, {} in a row, {} in a save, the others in a step; {} "
      "steps\n",
      kills, before_a_row, torn_rows_, in_a_save, last);
}

// ANTISD_KILLS sets the number of kills; tools/kill_test uses many.
TEST_F(TrainKills, KilledAtAnyMomentItGoesOnAsIfNothingHadBeen) {
  const char* wanted = std::getenv("ANTISD_KILLS");
  kill_often(wanted != nullptr ? std::atoi(wanted) : 20);
}

TEST_F(TrainKills, SoItDoesWithDynamicSampling) {
  const char* wanted = std::getenv("ANTISD_KILLS");
  kill_often(wanted != nullptr ? std::atoi(wanted) : 6, {"rollout.refill=2"});
}

TEST_F(TrainKills, SoItDoesWithResponsesThatGoOnInTheNextStep) {
  const char* wanted = std::getenv("ANTISD_KILLS");
  kill_often(wanted != nullptr ? std::atoi(wanted) : 6,
             {"rollout.partial=true", "rollout.partial_tokens=4", "rollout.refill=1"});
}

TEST_F(TrainKills, SoItDoesWithAStateOnTheHost) {
  kill_often(6, {"optim.offload=all"});
}

TEST_F(TrainStop, ASecondSignalLeavesAtOnce) {
  // A reward that hangs while a file exists: the step cannot end.
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
  EXPECT_THAT(read_file(folder_ / "err"), HasSubstr("exited without saving"));

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
}  // namespace antisd::inline cli
