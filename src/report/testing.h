// For tests only: run directories as the trainer writes them, from a few numbers.
#pragma once

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "io/json.h"

namespace antisd::testing {

inline void put(const std::filesystem::path& path, std::string_view text, bool append = false) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, append ? std::ios::app : std::ios::trunc) << text;
}

inline std::string metrics_row(std::int64_t step, double reward, bool gate_open = true) {
  return to_json_line({{"training/global_step", step},
                       {"critic/rewards/mean", reward},
                       {"antisd/gate", gate_open ? 1 : 0},
                       {"actor/grad_norm", nullptr}}) +
         "\n";
}

inline std::string config_text(std::string_view method, int seed, std::string_view more = "") {
  return fmt::format(
      "[method]\nname = \"{}\"\n[train]\nseed = {}\nsteps = 100\n[record]\ndir = "
      "\"runs/{}-{}\"\n{}",
      method, seed, method, seed, more);
}

inline std::string summary_text(double average) {
  return to_json_line({{"model", "m"},
                       {"step", 10},
                       {"benches",
                        {{"aime24",
                          {{"problems", 30},
                           {"n", 4},
                           {"avg", average},
                           {"avg_interval", {average - 0.1, average + 0.1}},
                           {"pass", {{"1", average}, {"4", average + 0.2}}}}}}},
                       {"average", average},
                       {"average_interval", {average - 0.1, average + 0.1}}});
}

inline std::string rollout_line(std::int64_t step, const std::string& prompt, int sample,
                                const std::string& text) {
  return to_json_line({{"step", step},
                       {"prompt_id", prompt},
                       {"sample", sample},
                       {"prompt_ids", {1, 2}},
                       {"response_ids", {3, 4, 5}},
                       {"text", text},
                       {"reward", sample % 2 == 0 ? Json(1.0) : Json(nullptr)},
                       {"reason", "a \"quoted\" reason"},
                       {"truncated", false},
                       {"student_logp", {-0.5, -1.5, -0.25}}}) +
         "\n";
}

// A complete run of `steps` steps whose reward is step / 100.
inline void make_run(const std::filesystem::path& run, std::string_view method, int seed,
                     int steps) {
  put(run / "config.toml", config_text(method, seed));
  put(run / "run.json",
      to_json_line({{"method", method}, {"seed", seed}, {"exit_reason", nullptr}}));
  std::string rows;
  for (int step = 1; step <= steps; ++step)
    rows += metrics_row(step, step / 100.0, step % 10 < 5);
  put(run / "metrics.jsonl", rows);
}

}  // namespace antisd::testing
