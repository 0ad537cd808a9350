#include "trainer/checkpoint_keeper.h"

#include <cmath>

#include "checkpoint/checkpoint.h"
#include "core/stopwatch.h"

namespace antisd {

Json to_json(const std::optional<BestCheckpoint>& best) {
  if (!best) return nullptr;
  return {{"metric", best->metric}, {"value", best->value}, {"step", best->step}};
}

std::optional<BestCheckpoint> best_checkpoint_from(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return BestCheckpoint{.metric = json.at("metric").get<std::string>(),
                        .value = json.at("value").get<double>(),
                        .step = json.at("step").get<std::int64_t>()};
}

bool CheckpointKeeper::is_better(std::optional<double> value,
                                 const std::optional<BestCheckpoint>& best) const {
  if (!value || !std::isfinite(*value)) return false;
  return !best || best->metric != config_.keep_best || *value > best->value;
}

bool CheckpointKeeper::is_peak(const MetricSet& metrics,
                               const std::optional<BestCheckpoint>& best) const {
  return metrics.find("timing_s/eval") && is_better(metrics.find(config_.keep_best), best);
}

void CheckpointKeeper::note_best(std::int64_t step, const MetricSet& metrics,
                                 std::optional<BestCheckpoint>& best) {
  const std::string& metric = config_.keep_best;
  if (metric.empty()) return;
  const std::optional<double> value = metrics.find(metric);
  if (!value) {
    if (metric.starts_with("val-") && !metrics.find("timing_s/eval")) return;
    if (!std::exchange(warned_of_best_, true))
      recorder_.warn(fmt::format("checkpoint.keep_best: there is no metric '{}'", metric));
    return;
  }
  if (is_better(value, best)) best = {metric, *value, step};
}

void CheckpointKeeper::save(std::int64_t step, const MetricSet& metrics,
                            std::optional<BestCheckpoint>& best,
                            const std::function<void(const std::filesystem::path&)>& write) {
  Stopwatch clock;
  saved_step_ = step;
  const std::optional<BestCheckpoint> best_before = best;
  note_best(step, metrics, best);
  const std::filesystem::path folder = recorder_.directory() / "checkpoints";
  try {
    recorder_.restore_directory();
    write(folder);
    Retention retention{.keep = config_.keep, .best_step = {}};
    if (best) retention.best_step = best->step;
    prune_checkpoints(folder, retention);
  } catch (const RunError& error) {
    best = best_before;
    recorder_.warn(
        fmt::format("STEP {} WAS NOT SAVED: {}. The run goes on; checkpoints from before are whole",
                    step, error.message()));
  }
  seconds_ += clock.lap();
}

double CheckpointKeeper::take_seconds() {
  return std::exchange(seconds_, 0);
}

}  // namespace antisd
