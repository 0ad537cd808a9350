// `train` as a user runs it: resuming, signals, continual training, a run directory in use.
#ifdef ANTISD_TORCH

#include <csignal>
#include <cstdlib>
#include <thread>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trainer/testing.h"

namespace antisd {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

struct Outcome {
  int status = -1;
  std::string err;
};

class Train : public ::testing::Test {
 protected:
  Train() {
    testing::make_small_model(folder_ / "model");
    testing::make_small_problems(folder_ / "problems.jsonl");
    // A reward of one's own: right says "win"; "lose" cannot be graded.
    write_file_atomically(folder_ / "reward.py", R"(
import json, sys
for line in iter(sys.stdin.readline, ""):
    row = json.loads(line)
    words = row["response"].split()
    reward = None if words[:1] == ["lose"] else float("win" in words)
    print(json.dumps({"id": row["id"], "reward": reward, "reason": "said so"}), flush=True)
)");
    std::string toml;
    RunConfig config;
    for (const std::string& setting : testing::small_settings(folder_.path()))
      config.options().assign(setting);
    config.options().assign("reward.kind=command");
    config.options().assign("reward.command=python3 " + (folder_ / "reward.py").string());
    config.options().assign("reward.workers=1");
    write_file_atomically(folder_ / "run.toml", config.options().to_toml(false));
  }

  std::string arguments(const std::string& run, const std::string& more) const {
    return fmt::format("train '{}' record.dir='{}' --threads 1 --device cpu {}",
                       (folder_ / "run.toml").string(), (folder_ / run).string(), more);
  }

  Outcome train(const std::string& run, const std::string& more = "") const {
    const std::string command = fmt::format("'{}/antisd' {} 2>'{}'", ANTISD_BINARY_DIR,
                                            arguments(run, more), (folder_ / "err").string());
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder_ / "err")};
  }

  // Starts in the background; returns the process.
  pid_t start(const std::string& run, const std::string& more = "") const {
    const std::string command = fmt::format("exec '{}/antisd' {} 2>'{}'", ANTISD_BINARY_DIR,
                                            arguments(run, more), (folder_ / "err").string());
    const pid_t pid = fork();
    if (pid == 0) {
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    return pid;
  }

  int status_of(pid_t pid) const {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  std::vector<Json> metrics(const std::string& run) const {
    std::vector<Json> rows;
    if (!fs::exists(folder_ / run / "metrics.jsonl")) return rows;
    JsonlReader reader(folder_ / run / "metrics.jsonl");
    for (Json row; reader.next(row);)
      rows.push_back(row);
    return rows;
  }

  void wait_for_steps(const std::string& run, std::size_t steps) const {
    for (int i = 0; i < 2000; ++i) {
      try {
        if (metrics(run).size() >= steps) return;
      } catch (const Error&) {  // a row that is being written
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL() << "no step " << steps;
  }

  // The rows without what time and machine say.
  std::vector<Json> reproducible(const std::string& run) const {
    std::vector<Json> rows = metrics(run);
    for (Json& row : rows) {
      for (auto it = row.begin(); it != row.end();)
        it = it.key().starts_with("timing_s/") || it.key().starts_with("perf/") ? row.erase(it)
                                                                                : std::next(it);
    }
    return rows;
  }

  std::string weights(const std::string& run, int step) const {
    const fs::path checkpoint = folder_ / run / "checkpoints" / fmt::format("step-{:06}", step);
    return read_file(checkpoint / "model" / "model.safetensors") +
           read_file(checkpoint / "optimizer.safetensors") + read_file(checkpoint / "state.json");
  }

  testing::TemporaryFolder folder_;
};

TEST_F(Train, ResumingChangesNotAByte) {
  ASSERT_EQ(train("whole").status, 0);
  ASSERT_EQ(train("parts", "train.steps=3").status, 0);
  const Outcome resumed = train("parts", "--resume");
  EXPECT_EQ(resumed.status, 0);
  EXPECT_THAT(resumed.err, HasSubstr("going on from"));
  EXPECT_EQ(weights("parts", 6), weights("whole", 6));
  EXPECT_EQ(reproducible("parts"), reproducible("whole"));
  ASSERT_THAT(reproducible("whole"), SizeIs(6));
  for (int step = 1; step <= 6; ++step) {
    const std::string name = fmt::format("rollouts/step-{:06}.jsonl", step);
    EXPECT_EQ(read_file(folder_ / "parts" / name), read_file(folder_ / "whole" / name));
  }
  // Nothing is left to do then, unless there are more steps.
  EXPECT_THAT(train("parts", "--resume").err, HasSubstr("nothing is left to do"));
  EXPECT_EQ(train("parts", "--resume train.steps=7").status, 0);
  EXPECT_THAT(metrics("parts"), SizeIs(7));

  const Json run = Json::parse(read_file(folder_ / "parts" / "run.json"));
  EXPECT_EQ(run["exit_reason"], "finished");
  EXPECT_EQ(run["last_step"], 7);
  EXPECT_THAT(run["earlier"], SizeIs(3));
  EXPECT_THAT(run["command_line"].get<std::string>(), HasSubstr("--resume"));

  // Training with its own config.toml repeats the run.
  fs::copy_file(folder_ / "whole/config.toml", folder_ / "run.toml",
                fs::copy_options::overwrite_existing);
  ASSERT_EQ(train("again").status, 0);
  EXPECT_EQ(weights("again", 6), weights("whole", 6));
}

TEST_F(Train, ATornCheckpointIsSkippedAndSaid) {
  ASSERT_EQ(train("run", "train.steps=4 checkpoint.every=2").status, 0);
  const fs::path newest = folder_ / "run/checkpoints/step-000004";
  const std::string whole = weights("run", 4);
  std::string state = read_file(newest / "state.json");
  state[state.size() / 2] ^= 1;
  write_file_atomically(newest / "state.json", state);
  const Outcome resumed = train("run", "train.steps=4 --resume");
  EXPECT_EQ(resumed.status, 0);
  EXPECT_THAT(resumed.err, AllOf(HasSubstr("skipped"), HasSubstr("step-000004"),
                                 HasSubstr("going on from"), HasSubstr("step-000002")));
  EXPECT_EQ(weights("run", 4), whole);
  EXPECT_THAT(metrics("run"), SizeIs(4));
}

TEST_F(Train, ASignalFinishesTheStepAndSaves) {
  for (const int signal : {SIGTERM, SIGUSR1}) {
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

TEST_F(Train, KilledAtAnyMomentItGoesOnWithoutARepeatedStep) {
  for (int round = 0; round < 5; ++round) {
    const pid_t pid = start("run",
                            "--resume train.steps=100000 checkpoint.every=2 "
                            "record.rollouts_every=0");
    wait_for_steps("run", static_cast<std::size_t>(3 * round + 2));
    std::this_thread::sleep_for(std::chrono::milliseconds(7 * round));
    kill(pid, SIGKILL);
    EXPECT_EQ(status_of(pid), -SIGKILL);
  }
  const auto last = static_cast<std::int64_t>(metrics("run").size()) + 2;
  ASSERT_EQ(train("run", fmt::format("--resume train.steps={}", last)).status, 0);
  std::int64_t expected = 0;
  for (const Json& row : metrics("run"))
    EXPECT_EQ(row["training/global_step"], ++expected);
  EXPECT_EQ(expected, last);
}

TEST_F(Train, ContinualTrainingInheritsOptimizerAndCursor) {
  ASSERT_EQ(train("grpo", "method.name=grpo train.steps=4").status, 0);
  const std::string parent = (folder_ / "grpo/checkpoints/step-000004").string();
  const Outcome outcome =
      train("antisd", fmt::format("train.init_from='{}' train.steps=3", parent));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const Json before = Json::parse(read_file(folder_ / "grpo/checkpoints/step-000004/state.json"));
  const Json after = Json::parse(read_file(folder_ / "antisd/checkpoints/step-000003/state.json"));
  EXPECT_EQ(after["step"], 3);
  EXPECT_EQ(after["steps_before"], 4);
  EXPECT_EQ(after["reference"], before["reference"]);
  const auto given = [](const Json& state) {
    return state["prompts"]["epoch"].get<int>() * 6 + state["prompts"]["position"].get<int>();
  };
  EXPECT_EQ(given(before), 12);
  EXPECT_EQ(given(after), 21);
  EXPECT_EQ(after["gate"]["steps"], 3);  // its own warm-up
  EXPECT_TRUE(after["gate"]["h_warm"].is_number());
  EXPECT_EQ(metrics("antisd").front()["training/global_step"], 1);
  // The first step starts from the parent's weights: its own sampler agrees with them.
  EXPECT_LT(metrics("antisd").front()["training/rollout_probs_diff_max"].get<double>(), 1e-5);
  // A run directory stands for its newest checkpoint.
  EXPECT_EQ(
      train("again", fmt::format("train.init_from='{}' train.steps=1", (folder_ / "grpo").string()))
          .status,
      0);
}

// Every method from the dump alone, with numpy.
TEST_F(Train, AnIndependentScriptRecomputesEveryAdvantage) {
  const fs::path repository = ANTISD_SOURCE_DIR;
  const fs::path python = repository / ".deps/reference/bin/python";
  if (!fs::exists(python)) GTEST_SKIP() << "needs `make references`";
  for (const std::string method :
       {"grpo", "sd", "opd", "antisd", "antisd-reverse-kl", "antisd-multiplicative",
        "antisd-no-teacher", "antisd-student-gate"}) {
    const Outcome outcome = train(method, fmt::format("method.name={} train.steps=4", method));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const std::string command = fmt::format("'{}' '{}' '{}'", python.string(),
                                            (repository / "tools/check_advantages.py").string(),
                                            (folder_ / method).string());
    EXPECT_EQ(std::system(command.c_str()), 0) << method;
  }
}

TEST_F(Train, MistakesAreOneClearMessage) {
  const auto message = [&](const std::string& run, const std::string& more) {
    const Outcome outcome = train(run, more);
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(message("a", "rollout.group_size=1"), HasSubstr("group_size"));
  EXPECT_THAT(message("b", "train.stepz=1"), HasSubstr("train.steps"));
  EXPECT_THAT(message("c", "method.name=sdpo method.sdpo.teacher_ema=0.1"),
              HasSubstr("teacher_ema"));
  EXPECT_THAT(message("d", "data.train=missing.jsonl"), HasSubstr("missing.jsonl"));
  EXPECT_THAT(message("e", "model.path=missing"), HasSubstr("missing"));
  EXPECT_THAT(message("f", "method.gate.min_warm=50"), HasSubstr("too small to gate on"));

  ASSERT_EQ(train("run", "train.steps=2").status, 0);
  EXPECT_THAT(message("run", ""), HasSubstr("--resume"));
  EXPECT_THAT(message("run", "--resume train.seed=3"), HasSubstr("seed"));
  testing::make_small_problems(folder_ / "problems.jsonl", 5);
  EXPECT_THAT(message("run", "--resume"), HasSubstr("the data set had 6 problems"));
  fs::remove(folder_ / "problems.jsonl");
  EXPECT_THAT(message("run", "--resume"), HasSubstr("problems.jsonl"));
  EXPECT_EQ(metrics("run").size(), 2u);  // nothing is lost
}

TEST_F(Train, ARunDirectoryIsForOneProcess) {
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
