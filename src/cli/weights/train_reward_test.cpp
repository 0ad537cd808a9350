// `train` with a reward program that misbehaves.

#include <fstream>

#include <gmock/gmock.h>

#include "cli/weights/train_testing.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Outcome;
using ::testing::SizeIs;

class TrainReward : public testing::TrainTest {
 protected:
  // A command that runs before the fixture's reward program: "BEFORE; python3 reward.py".
  std::string command(const std::string& before) const {
    return fmt::format("'reward.command={}; exec python3 {}'", before, path("reward.py"));
  }
};

TEST_F(TrainReward, AProgramThatDoesNotGradeIsFoundBeforeTheFirstStep) {
  const struct {
    std::string setting, problem;
  } cases[] = {
      {"reward.command=/nonexistent/reward", "status 127"},
      {command("echo it is broken >&2; exit 3"), "status 3"},
      {command("sleep 60") + " reward.timeout_s=1", "does not answer in time"},
  };
  for (const auto& one : cases)
    for (const char* mode : {"", "--dry-run "}) {
      const Outcome outcome = train("broken", mode + one.setting);
      EXPECT_EQ(outcome.status, 1) << one.setting << outcome.err;
      EXPECT_THAT(outcome.err, AllOf(HasSubstr("the reward program `"), HasSubstr(one.problem)));
      EXPECT_THAT(metrics("broken"), IsEmpty());
    }
  EXPECT_THAT(train("broken", cases[1].setting).err, HasSubstr("it is broken"));
}

TEST_F(TrainReward, ALogLineOnStandardOutputIsSkippedAndSaidOnce) {
  const Outcome outcome = train("logs", "train.steps=2 " + command("echo INFO loading"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const std::size_t said = outcome.err.find("that are not JSON");
  ASSERT_NE(said, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("that are not JSON", said + 1), std::string::npos);
  EXPECT_THAT(outcome.err, HasSubstr("INFO loading"));
  EXPECT_THAT(metrics("logs"), SizeIs(2));
  const Outcome dry = train("dry", "--dry-run " + command("echo INFO loading"));
  EXPECT_EQ(dry.status, 0) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("(it answers)"));
}

// It answers the probe and then no response: the run ends with what it has learnt, not as
// "finished".
TEST_F(TrainReward, ARunWithoutGradesGivesUp) {
  const std::string few =
      "rollout.prompts_per_step=1 rollout.group_size=2 rollout.max_sequence_tokens=100";
  write("reward.py", R"(
import json, os, sys
for line in iter(sys.stdin.readline, ""):
    if os.path.exists("probed"): sys.exit("no more")
    open("probed", "w").close()
    print(json.dumps({"id": json.loads(line)["id"], "reward": 0}), flush=True)
)");
  const Outcome outcome = train("run", "train.steps=50 reward.give_up_after=2 " + few);
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("no grade in 2 consecutive steps"), HasSubstr("ended with status 1"),
                    HasSubstr("reward.py"), HasSubstr("--resume")));
  EXPECT_THAT(read_file(folder_ / "run/run.json"), Not(HasSubstr("finished")));
  // After the program is fixed, the run continues.
  write("reward.py", R"(
import json, sys
for line in iter(sys.stdin.readline, ""):
    print(json.dumps({"id": json.loads(line)["id"], "reward": 0.5}), flush=True)
)");
  const Outcome resumed = train("run", "--resume train.steps=4 " + few);
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_THAT(metrics("run"), SizeIs(4));
}

TEST_F(TrainReward, NothingOfTheProgramOutlivesAKilledRun) {
  const std::string daemon = path("daemon");
  const pid_t run = start("run", "train.steps=100000 record.rollouts_every=0 " +
                                     command("(setsid sleep 600 & echo $! >" + daemon + ")"));
  wait_for_steps("run", 1);
  pid_t left = 0;
  std::ifstream(daemon) >> left;
  ASSERT_GT(left, 1);
  EXPECT_EQ(kill(left, 0), 0);
  kill(run, SIGKILL);
  EXPECT_EQ(status_of(run), -SIGKILL);
  for (int i = 0; i < 2000 && kill(left, 0) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_NE(kill(left, 0), 0);
}

}  // namespace
}  // namespace antisd::inline cli
