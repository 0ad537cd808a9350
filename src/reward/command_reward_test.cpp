#include "reward/command_reward.h"

#include <fstream>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/testing.h"
#include "reward/grader.h"

namespace antisd::inline reward {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
    if do == "plain": print(json.dumps({"reward": r["value"]}), flush=True); continue
    if do == "twice": os.write(1, b'{"reward": 1}\n{"reward": 0}\n'); continue
    if do == "echo": print(json.dumps({"id": r["id"], "reward": 1, "reason": line}), flush=True); continue
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
  const Verdict first = reward.grade({{"id", "mine"}, {"value", 0.25}});
  EXPECT_EQ(first.reward, 0.25) << first.reason;
  const Verdict second = reward.grade({{"value", 1}, {"do", "stray"}});
  EXPECT_EQ(second.reward, 1.0);
  EXPECT_EQ(first.reason, second.reason) << "one process serves many requests";
  EXPECT_EQ(reward.grade({{"value", nullptr}}).reward, std::nullopt);
}

TEST_F(CommandRewardTest, AnswersWithoutAnIdAreTakenInOrder) {
  CommandReward reward({.command = command_, .timeout_s = 30, .workers = 1});
  for (const double value : {0.0, 0.25, 1.0, 0.5})
    EXPECT_EQ(reward.grade({{"do", "plain"}, {"value", value}}).reward, value);
  const Verdict mixed = reward.grade({{"value", 1}});
  EXPECT_EQ(mixed.reward, std::nullopt);
  EXPECT_THAT(mixed.reason, HasSubstr("some requests with an id and some without"));
  // A new process may choose again, and is held to it.
  EXPECT_EQ(reward.grade({{"value", 1}}).reward, 1.0);
  EXPECT_THAT(reward.grade({{"do", "plain"}, {"value", 1}}).reason, HasSubstr("some without"));
}

// The second answer would otherwise be that of the next request.
TEST_F(CommandRewardTest, AnAnswerTooManyIsAFailureAndNoReward) {
  CommandReward reward({.command = command_, .timeout_s = 30, .workers = 1});
  const auto expect_failure = [&](const char* what) {
    const Verdict verdict = reward.grade({{"do", what}, {"value", 1}});
    EXPECT_EQ(verdict.reward, std::nullopt) << what;
    EXPECT_THAT(verdict.reason, HasSubstr("more lines than it gets requests"));
  };
  expect_failure("twice");
  EXPECT_EQ(reward.grade({{"do", "plain"}, {"value", 0.75}}).reward, 0.75);
  EXPECT_EQ(reward.grade({{"do", "twice"}}).reward, 1.0);  // later it is seen by the next request
  expect_failure("plain");
  EXPECT_EQ(reward.grade({{"do", "plain"}, {"value", 0.75}}).reward, 0.75);
}

TEST_F(CommandRewardTest, TheRequestHasEveryColumnOfTheRow) {
  const std::unique_ptr<Grader> grader =
      make_grader({.kind = "command", .command = command_, .timeout_s = 30, .workers = 1});
  Json row = {{"id", 17},        {"question", "2 + 2"}, {"answer", 4},
              {"level", {1, 2}}, {"response", "mine"},  {"do", "echo"}};
  const Problem problem =
      ProblemParser({{"problem", "question"}}, true, /*keep_row=*/true).parse(row, "f:1", "f", 1);
  Response four;
  four.text = "four";
  const Json request = Json::parse(grader->grade(grade_request(problem, four)).reason);
  EXPECT_TRUE(request["id"].is_number());
  EXPECT_EQ(request["row_id"], "17");
  EXPECT_EQ(request["problem"], "2 + 2");
  EXPECT_EQ(request["question"], "2 + 2");
  EXPECT_EQ(request["answer"], "4");
  EXPECT_EQ(request["response"], "four");
  EXPECT_EQ(request["level"], Json({1, 2}));
}

TEST_F(CommandRewardTest, FailuresAreNullAndTheNextRequestWorks) {
  CommandReward reward({.command = command_, .timeout_s = 3, .workers = 1});
  const std::pair<const char*, const char*> failures[] = {
      {"crash", "status 3"}, {"die", "signal 9"},          {"hang", "in time"},
      {"garbage", "hello"},  {"array", "something other"}, {"flood", "without an end"}};
  for (const auto& [what, reason] : failures) {
    const Verdict verdict = reward.grade({{"do", what}, {"value", 1}});
    EXPECT_EQ(verdict.reward, std::nullopt) << what;
    EXPECT_THAT(verdict.reason, HasSubstr(reason));
    EXPECT_EQ(reward.grade({{"value", 1}}).reward, 1.0) << "after " << what;
  }
}

TEST_F(CommandRewardTest, AnyFiniteNumberIsAReward) {
  CommandReward reward({.command = command_, .timeout_s = 30, .workers = 1});
  for (const double value : {1.5, -0.1, -7.0, 1e300})
    EXPECT_EQ(reward.grade({{"value", value}}).reward, value);
  const std::string process = reward.grade({{"value", 1}}).reason;
  // Python writes NaN and Infinity, which are not JSON.
  for (const char* text : {"\"1\"", "true", "[1]", "NaN", "-Infinity"}) {
    const Verdict verdict = reward.grade({{"do", "raw"}, {"text", text}});
    EXPECT_EQ(verdict.reward, std::nullopt) << text;
    EXPECT_THAT(verdict.reason, HasSubstr("not a number"));
  }
  EXPECT_EQ(reward.grade({{"value", 1}}).reason, process) << "it is no reason to end it";
}

TEST_F(CommandRewardTest, MissingCommandIsNullWithAReason) {
  CommandReward reward(
      {.command = "exec /nonexistent/program 2>/dev/null", .timeout_s = 5, .workers = 1});
  EXPECT_THAT(reward.grade(Json::object()).reason, HasSubstr("status 12"));
  EXPECT_THAT(testing::error_of([] { CommandReward({.command = ""}); }),
              HasSubstr("reward.command"));
}

TEST_F(CommandRewardTest, LinesThatAreNoJsonAreSkippedAndSaidOnce) {
  CommandReward reward(
      {.command = "echo 'INFO loading'; echo; " + command_, .timeout_s = 30, .workers = 1});
  const Verdict verdict = reward.grade({{"value", 0.5}});
  EXPECT_EQ(verdict.reward, 0.5) << verdict.reason;
  EXPECT_THAT(reward.take_warnings(), ElementsAre(HasSubstr("INFO loading")));
  EXPECT_EQ(reward.grade({{"value", 0.5}, {"do", "crash"}}).reward, std::nullopt);
  EXPECT_EQ(reward.grade({{"value", 0.5}}).reward, 0.5) << "the new process logs too";
  EXPECT_THAT(reward.take_warnings(), IsEmpty());
}

TEST_F(CommandRewardTest, ProbeTellsHowAProgramFails) {
  const auto problem_of = [](const std::string& command, double timeout_s = 20) {
    CommandReward reward({.command = command, .timeout_s = timeout_s, .workers = 1});
    return testing::error_of([&] { reward.probe({{"response", ""}}); });
  };
  const std::string absent = problem_of("/nonexistent/program --now");
  EXPECT_THAT(absent, AllOf(HasSubstr("`/nonexistent/program --now`"), HasSubstr("status 127"),
                            HasSubstr("not found"), HasSubstr("reward.timeout_s")));
  EXPECT_THAT(problem_of("echo first >&2; echo second >&2; exit 7"),
              AllOf(HasSubstr("status 7"), HasSubstr("first\n    second")));
  EXPECT_THAT(problem_of("kill -9 $$"), HasSubstr("signal 9"));
  EXPECT_THAT(problem_of("echo waiting; sleep 60", 1),
              AllOf(HasSubstr("in time"), HasSubstr("not JSON: waiting")));
  EXPECT_THAT(problem_of("cat"), HasSubstr("something other than an answer"));
  EXPECT_THAT(problem_of("yes no"), HasSubstr("lines without an answer"));
}

TEST_F(CommandRewardTest, ProbeAcceptsAnAnswerAndKeepsTheProcess) {
  CommandReward reward({.command = command_, .timeout_s = 30, .workers = 1});
  EXPECT_NO_THROW(reward.probe({{"value", nullptr}})) << "it cannot tell: an answer";
  EXPECT_THAT(testing::error_of([&] {
                reward.probe({{"do", "raw"}, {"text", "\"2\""}});
              }),
              HasSubstr("not a number"));
  const std::string process = reward.grade({{"value", 1}}).reason;
  EXPECT_NO_THROW(reward.probe({{"value", 1}}));
  EXPECT_EQ(reward.grade({{"value", 1}}).reason, process);
  // A process that ended while idle is not an error.
  kill(std::stoi(process.substr(4)), SIGKILL);
  EXPECT_NO_THROW(reward.probe({{"value", 1}}));
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
        const Verdict verdict = reward.grade({{"value", value}});
        EXPECT_EQ(verdict.reward, value) << verdict.reason;
        const std::lock_guard lock(mutex);
        processes.insert(verdict.reason);
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_LE(processes.size(), 2u);
}

bool is_gone(pid_t pid) {
  for (int i = 0; i < 2000 && kill(pid, 0) == 0; ++i)
    usleep(10'000);
  return kill(pid, 0) != 0;
}

// A program that leaves a process in its own session, whose parent is dead, and prints its pid.
class CommandRewardDaemon : public CommandRewardTest {
 protected:
  CommandRewardDaemon() {
    command_ =
        fmt::format("(setsid sleep 600 & echo $! >'{0}/new' && mv '{0}/new' '{0}/daemon') ; {1}",
                    folder_.path().string(), command_);
  }
  pid_t daemon() const {
    pid_t pid = 0;
    std::ifstream(folder_ / "daemon") >> pid;
    return pid;
  }
};

TEST_F(CommandRewardDaemon, EndsWithThePoolAndWithItsProcess) {
  pid_t first = 0, second = 0;
  {
    CommandReward reward({.command = command_, .timeout_s = 30, .workers = 1});
    ASSERT_EQ(reward.grade({{"value", 1}}).reward, 1.0);
    first = daemon();
    ASSERT_GT(first, 1);
    ASSERT_EQ(kill(first, 0), 0);
    EXPECT_THAT(reward.grade({{"do", "crash"}}).reason, HasSubstr("status 3"))
        << "although the other holds its output open";
    EXPECT_TRUE(is_gone(first)) << "the process that started it was replaced";
    ASSERT_EQ(reward.grade({{"value", 1}}).reward, 1.0);
    second = daemon();
    ASSERT_EQ(kill(second, 0), 0);
  }
  EXPECT_NE(kill(second, 0), 0) << "it is gone when the pool is";
}

TEST_F(CommandRewardDaemon, EndsWhenTheRunIsKilled) {
  const pid_t run = fork();
  if (run == 0) {
    CommandReward reward({.command = command_, .timeout_s = 30, .workers = 1});
    reward.grade({{"value", 1}});
    std::ofstream(folder_ / "ready") << "";
    pause();
    _exit(0);
  }
  for (int i = 0; i < 3000 && !std::filesystem::exists(folder_ / "ready"); ++i)
    usleep(10'000);
  const pid_t left = daemon();
  ASSERT_GT(left, 1);
  EXPECT_EQ(kill(left, 0), 0);
  kill(run, SIGKILL);
  waitpid(run, nullptr, 0);
  EXPECT_TRUE(is_gone(left));
}

TEST_F(CommandRewardTest, NoProcessIsLeft) {
  pid_t shell = 0;
  {
    // The shell stays as the parent of python: both must be killed.
    CommandReward reward({.command = "python3 " + (folder_ / "worker.py").string() + "; true",
                          .timeout_s = 30,
                          .workers = 1});
    const Verdict verdict = reward.grade({{"value", 1}});
    ASSERT_TRUE(verdict.reward) << verdict.reason;
    shell = std::stoi(verdict.reason.substr(4));
    EXPECT_EQ(kill(shell, 0), 0);
  }
  for (int i = 0; i < 200 && kill(shell, 0) == 0; ++i)
    usleep(10'000);  // init reaps it
  EXPECT_NE(kill(shell, 0), 0);
}

}  // namespace
}  // namespace antisd::inline reward
