// What a run leaves in its directory: config.toml, run.json, metrics.jsonl, TensorBoard files,
// rollouts/, log.txt. Metrics also go to wandb where record.loggers names it.
//
//   Recorder recorder(config.record, console);
//   recorder.open(config, info, 0);
//   recorder.metrics(12, metrics);
//   recorder.finish("finished", 12);
//
// Threads may share it. What the disk refuses is warned about and never stops the run. Nor does a
// directory that somebody removes: that is said at once, and the next save makes it anew.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "config/run_config.h"
#include "io/json.h"
#include "io/unique_fd.h"
#include "run/metrics/append_file.h"
#include "run/metrics/console.h"
#include "run/metrics/metrics_file.h"
#include "run/metrics/tensorboard_file.h"
#include "run/run_lock.h"
#include "run/wandb_logger.h"

namespace antisd::inline run {

// What run.json says of the program and the machine.
struct RunInfo {
  std::string version, revision, command_line, device, dtype, method;
};

// What the loggers of a run need and does not exist here. InputError.
void check_loggers(const RecordConfig& config);

class Recorder {
 public:
  // Makes the directory and opens log.txt. RunError where that fails.
  Recorder(const RecordConfig& config, Console& console);
  // Of a rank other than the first: it says and writes nothing but failure().
  explicit Recorder(const RecordConfig& config, Console& console, int rank);

  bool writes() const { return log_.has_value(); }

  // To the console and to log.txt.
  void info(std::string_view text);
  void warn(std::string_view text);
  // To log.txt alone.
  void note(std::string_view text);

  // Begins or, with step > 0, goes on: rows of steps after `step` are cut off, and a config.toml
  // that says something else stays as config.step-NNNNNN.toml, with which the steps before were
  // made.
  void open(const RunConfig& config, const RunInfo& info, std::int64_t step);

  void metrics(std::int64_t step, const MetricSet& metrics);
  // Adds to the row of a step that is written already, or makes one of it.
  void amend(std::int64_t step, const MetricSet& more);
  // The row of a step in metrics.jsonl.
  std::optional<MetricSet> find_metrics(std::int64_t step) const;
  // rollouts/step-NNNNNN.jsonl where it is due: `count` rows. Each is made when it is written,
  // because all of them together may take more memory than the step itself.
  void rollouts(std::int64_t step, std::size_t count, const std::function<Json(std::size_t)>& row);
  // What stopped a step, into failed/. Returns the file.
  std::filesystem::path failure(std::int64_t step, const Json& row);
  // run.json, with the exit reason: "finished", "stopped by a signal", or an error's message.
  void finish(const std::string& reason, std::int64_t step);

  // Before something is saved: makes the directory anew where it was removed, with configuration
  // and run.json; rows go on from there. RunError where that fails, or another run has begun there.
  void restore_directory();

  const std::filesystem::path& directory() const { return directory_; }

 private:
  void start_loggers(const RunConfig& config, std::int64_t step);
  void notice_removal();
  void attempt(const std::string& what, const std::function<void()>& write);
  void write_run_json();

  using Lock = std::lock_guard<std::recursive_mutex>;  // what is said may be said by what writes
  mutable std::recursive_mutex mutex_;
  RecordConfig config_;
  Console& console_;
  std::filesystem::path directory_;
  UniqueFd folder_;  // the directory itself: held open, its number is nobody else's
  std::optional<AppendFile> log_;
  std::optional<MetricsFile> metrics_;
  std::optional<TensorboardFile> tensorboard_;
  std::optional<WandbLogger> wandb_;
  Json run_;
  std::string settings_;           // config.toml
  bool is_gone_ = false;           // the directory, or its metrics.jsonl: said, not yet made anew
  std::optional<RunLock> relock_;  // of a directory that was made anew
};

}  // namespace antisd::inline run
