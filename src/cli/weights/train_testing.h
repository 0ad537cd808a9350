// For tests of `train` as a user runs it: a small model, problems, and a reward in Python.
#pragma once

#include <csignal>
#include <thread>

#include "cli/command_testing.h"
#include "trainer/testing.h"

namespace antisd::testing {

namespace fs = std::filesystem;

class TrainTest : public CommandTest {
 protected:
  // `settings` are added to those of small_settings() in run.toml.
  explicit TrainTest(const std::vector<std::string>& settings = {}) {
    make_small_model(folder_ / "model");
    make_small_problems(folder_ / "problems.jsonl");
    // A user's reward program: "win" is right; a response that starts with "lose" cannot be graded.
    write("reward.py", R"(
import json, sys
for line in iter(sys.stdin.readline, ""):
    row = json.loads(line)
    words = row["response"].split()
    reward = None if words[:1] == ["lose"] else float("win" in words)
    print(json.dumps({"id": row["id"], "reward": reward, "reason": "said so"}), flush=True)
)");
    RunConfig config;
    for (const std::string& setting : small_settings(folder_.path()))
      config.options().assign(setting);
    config.options().assign("reward.kind=command");
    config.options().assign("reward.command=python3 " + path("reward.py"));
    config.options().assign("reward.workers=1");
    for (const std::string& setting : settings)
      config.options().assign(setting);
    write("run.toml", config.options().to_toml(false));
  }

  Outcome train(const std::string& run_folder, const std::string& more = "") const {
    return run(arguments(run_folder, more));
  }

  // Starts in the background; returns the process.
  pid_t start(const std::string& run_folder, const std::string& more = "") const {
    return launch(arguments(run_folder, more));
  }

  std::vector<Json> metrics(const std::string& run_folder) const {
    std::vector<Json> rows;
    if (!fs::exists(folder_ / run_folder / "metrics.jsonl")) return rows;
    JsonlReader reader(folder_ / run_folder / "metrics.jsonl");
    for (Json row; reader.next(row);)
      rows.push_back(row);
    return rows;
  }

  void wait_for_steps(const std::string& run, std::size_t steps) const {
    for (int i = 0; i < 2000; ++i) {
      try {
        if (metrics(run).size() >= steps) return;
      } catch (const Error&) {  // a row is being written
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL() << "no step " << steps;
  }

  // The rows without times and machine-dependent values.
  std::vector<Json> reproducible(const std::string& run) const {
    std::vector<Json> rows = metrics(run);
    for (Json& row : rows) {
      for (auto it = row.begin(); it != row.end();)
        it = is_time_metric(it.key()) ? row.erase(it) : std::next(it);
    }
    return rows;
  }

  std::string weights(const std::string& run, int step) const {
    const fs::path checkpoint = folder_ / run / "checkpoints" / fmt::format("step-{:06}", step);
    return read_file(checkpoint / "model" / "model.safetensors") +
           read_file(checkpoint / "optimizer.safetensors") + read_file(checkpoint / "state.json");
  }

 private:
  static std::string arguments(const std::string& run_folder, const std::string& more) {
    return fmt::format("train run.toml record.dir='{}' --threads 1 --device cpu {}", run_folder,
                       more);
  }
};

}  // namespace antisd::testing
