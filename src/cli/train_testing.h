// For tests of `train` as a user runs it: a small model, problems, and a reward in Python.
#pragma once

#ifdef ANTISD_TORCH

#include <csignal>
#include <cstdlib>
#include <thread>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trainer/testing.h"

namespace antisd::testing {

namespace fs = std::filesystem;

struct Outcome {
  int status = -1;
  std::string err;
};

class TrainTest : public ::testing::Test {
 protected:
  TrainTest() {
    make_small_model(folder_ / "model");
    make_small_problems(folder_ / "problems.jsonl");
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
    for (const std::string& setting : small_settings(folder_.path()))
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

  TemporaryFolder folder_;
};

}  // namespace antisd::testing

#endif
