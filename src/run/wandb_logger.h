// Metrics to wandb, through its own Python package in a process beside the run.
//
//   check_wandb();  // before the run: is there such a package?
//   WandbLogger logger({.config = config.record.wandb, .directory = run}, voice);
//   logger.log(12, metrics);
//   logger.finish("finished", 12);
//
// log() never waits and nothing here ends a run. Rows go into a queue, which is emptied as far as
// the process reads; when the queue is full, rows are dropped and counted. A process that fails or
// ends is a warning. finish() waits for it, at most for config.finish_s seconds. No process
// outlives this object (io/process/supervised_command.h).
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "config/run_config.h"
#include "io/json.h"
#include "io/process/supervised_command.h"
#include "run/metrics/metric_set.h"

namespace antisd::inline run {

// Asks the Python that would be used, $ANTISD_PYTHON or python3, whether it has wandb. InputError.
void check_wandb();

struct WandbStart {
  WandbConfig config;
  std::filesystem::path directory;  // of the run: with metrics.jsonl; wandb's files go there too
  std::int64_t step = 0;            // steps done before; above 0 the same wandb run goes on
  Json settings;                    // what wandb shows as the run's configuration
  std::size_t max_queued_bytes = 16 << 20;
};

struct WandbVoice {
  std::function<void(const std::string&)> info, warn;
};

class WandbLogger {
 public:
  WandbLogger(WandbStart start, WandbVoice voice);

  void log(std::int64_t step, const MetricSet& metrics);
  // Of a step whose row may be sent already.
  void amend(std::int64_t step, const MetricSet& more);
  void finish(const std::string& reason, std::int64_t step);

 private:
  void add_row(std::int64_t step, const MetricSet& metrics, bool amends);
  void exchange();  // sends and receives what is possible now
  void send_queued();
  void receive();
  void handle(const std::string& line);
  void stop(const std::string& why);
  std::string how_it_ended(int milliseconds);

  WandbStart start_;
  WandbVoice voice_;
  UniqueFd channel_;
  std::optional<SupervisedCommand> process_;  // nothing: it ended
  std::deque<std::string> queue_;
  std::size_t queued_bytes_ = 0, sent_bytes_ = 0;  // the second of the first line
  std::int64_t dropped_ = 0;
  std::string received_, folder_;
  bool is_done_ = false;
};

}  // namespace antisd::inline run
