#include "reward/command_reward.h"

#include <fstream>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include "core/testing.h"

namespace antisd {
namespace {

using ::testing::HasSubstr;

// A worker whose behaviour the request chooses.
constexpr const char* kWorker = R"py(
import json, os, sys, time
for line in sys.stdin:
    r = json.loads(line)
    do = r.get("do")
    if do == "crash": os._exit(3)
    if do == "die": os.kill(os.getpid(), 9)
    if do == "hang": time.sleep(60)
    if do == "garbage": print("hello", flush=True); continue
    if do == "array": print("[1]", flush=True); continue
    if do == "flood": sys.stdout.write("x" * (20 << 20)); sys.stdout.flush(); continue
    if do == "close": os.close(1); time.sleep(60)
    if do == "stray": print(json.dumps({"id": -5, "reward": 1}), flush=True)
    if do == "raw": print('{"id": %d, "reward": %s}' % (r["id"], r["text"]), flush=True); continue
    print(json.dumps({"id": r["id"], "reward": r.get("value"), "reason": "pid %d" % os.getpid()}), flush=True)
)py";

class CommandRewardTest : public ::testing::Test {
 protected:
  CommandRewardTest() {
    std::ofstream(folder_ / "worker.py") << kWorker;
    command_ = "exec python3 " + (folder_ / "worker.py").string();
  }
  testing::TemporaryFolder folder_;
  std::string command_;
};

TEST_F(CommandRewardTest, GivesRewards) {
  CommandReward reward({.command = command_, .timeout_s = 30, .workers = 1});
  const CommandScore first = reward.score({{"id", "mine"}, {"value", 0.25}});
  EXPECT_EQ(first.reward, 0.25) << first.reason;
  const CommandScore second = reward.score({{"value", 1}, {"do", "stray"}});
  EXPECT_EQ(second.reward, 1.0);
  EXPECT_EQ(first.reason, second.reason) << "one process serves many requests";
  EXPECT_EQ(reward.score({{"value", nullptr}}).reward, std::nullopt);
}

TEST_F(CommandRewardTest, FailuresAreNullAndTheNextRequestWorks) {
  CommandReward reward({.command = command_, .timeout_s = 3, .workers = 1});
  const std::pair<const char*, const char*> failures[] = {
      {"crash", "status 3"}, {"die", "signal 9"},         {"hang", "in time"},
      {"garbage", "hello"},  {"array", "something else"}, {"flood", "without an end"}};
  for (const auto& [what, reason] : failures) {
    const CommandScore score = reward.score({{"do", what}, {"value", 1}});
    EXPECT_EQ(score.reward, std::nullopt) << what;
    EXPECT_FALSE(score.error) << what;
    EXPECT_THAT(score.reason, HasSubstr(reason));
    EXPECT_EQ(reward.score({{"value", 1}}).reward, 1.0) << "after " << what;
  }
}

TEST_F(CommandRewardTest, RewardsOutsideTheRangeAreErrors) {
  CommandReward reward({.command = command_, .timeout_s = 30, .workers = 1});
  for (const char* text : {"1.5", "-0.1", "\"1\"", "true", "[1]", "1e300"}) {
    const CommandScore score = reward.score({{"do", "raw"}, {"text", text}});
    EXPECT_EQ(score.reward, std::nullopt) << text;
    EXPECT_TRUE(score.error) << text;
    EXPECT_THAT(score.reason, HasSubstr("[0, 1]"));
  }
  // Python writes NaN, which is not JSON.
  const CommandScore nan = reward.score({{"do", "raw"}, {"text", "NaN"}});
  EXPECT_EQ(nan.reward, std::nullopt);
  EXPECT_TRUE(nan.error);
}

TEST_F(CommandRewardTest, MissingCommandIsNullWithAReason) {
  CommandReward reward(
      {.command = "exec /nonexistent/program 2>/dev/null", .timeout_s = 5, .workers = 1});
  EXPECT_THAT(reward.score(Json::object()).reason, HasSubstr("status 12"));
  EXPECT_THAT(testing::error_of([] { CommandReward({.command = ""}); }),
              HasSubstr("reward.command"));
}

TEST_F(CommandRewardTest, ManyThreadsShareThePool) {
  CommandReward reward({.command = command_, .timeout_s = 60, .workers = 2});
  std::mutex mutex;
  std::set<std::string> processes;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const double value = (t * 50 + i) / 200.0;
        const CommandScore score = reward.score({{"value", value}});
        EXPECT_EQ(score.reward, value) << score.reason;
        const std::lock_guard lock(mutex);
        processes.insert(score.reason);
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_LE(processes.size(), 2u);
}

TEST_F(CommandRewardTest, NoProcessIsLeft) {
  pid_t shell = 0;
  {
    // The shell stays as the parent of python: both must go.
    CommandReward reward({.command = "python3 " + (folder_ / "worker.py").string() + "; true",
                          .timeout_s = 30,
                          .workers = 1});
    const CommandScore score = reward.score({{"value", 1}});
    ASSERT_TRUE(score.reward) << score.reason;
    shell = std::stoi(score.reason.substr(4));
    EXPECT_EQ(kill(shell, 0), 0);
  }
  for (int i = 0; i < 200 && kill(shell, 0) == 0; ++i)
    usleep(10'000);  // init reaps it
  EXPECT_NE(kill(shell, 0), 0);
}

}  // namespace
}  // namespace antisd
