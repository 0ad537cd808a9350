// What the files of a run directory are called (docs/runs.md says what they hold). Whoever writes
// or reads one takes its name from here.
//
//   const bool is_there = std::filesystem::exists(run / kConfigFile);
//   const std::filesystem::path dump = run / rollouts_file(10);  // rollouts/step-000010.jsonl
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace antisd::inline run {

inline constexpr const char* kConfigFile = "config.toml";
inline constexpr const char* kRunFile = "run.json";
inline constexpr const char* kMetricsFile = "metrics.jsonl";
inline constexpr const char* kLogFile = "log.txt";
inline constexpr const char* kWandbFile = "wandb.json";  // which wandb run, and its last step
inline constexpr const char* kLockFile = ".lock";
inline constexpr const char* kRolloutsFolder = "rollouts";
inline constexpr const char* kCheckpointsFolder = "checkpoints";
inline constexpr const char* kEvaluationsFolder = "eval";
inline constexpr const char* kSummaryFile = "summary.json";  // of an evaluation, written last

// How a step names its files: "step-000010".
std::string step_name(std::int64_t step);
// Nothing for a name that step_name() would not give.
std::optional<std::int64_t> step_of_name(std::string_view name);

// Names below the run directory.
std::string rollouts_file(std::int64_t step);      // rollouts/step-000010.jsonl
std::string failure_file(std::int64_t step);       // failed/step-000010.jsonl
std::string evaluation_folder(std::int64_t step);  // eval/step-000010
// Nothing for a name that no dump of rollouts has: of "step-000010.jsonl", 10.
std::optional<std::int64_t> step_of_rollouts(std::string_view name);

// Whether a run has begun there: it has rows or checkpoints.
bool holds_a_run(const std::filesystem::path& directory);

}  // namespace antisd::inline run
