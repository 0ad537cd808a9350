#include "run/checkpoint/checkpoint_keeper.h"

#include <cmath>
#include <thread>

#include "core/stopwatch.h"
#include "io/system_error.h"
#include "model/not_finite.h"
#include "run/checkpoint/folders.h"

namespace antisd::inline run {
namespace {

bool may_pass(const RunError& error) {
  const auto* refused = dynamic_cast<const WriteError*>(&error);
  return refused == nullptr || refused->may_pass();
}

// The newest whole checkpoint of a step below `step`.
std::optional<FoundCheckpoint> newest_below(const std::filesystem::path& checkpoints,
                                            std::int64_t step) {
  for (const StepFolder& folder : step_folders(checkpoints)) {
    if (folder.step >= step) continue;
    try {
      return verify_checkpoint(folder.path);
    } catch (const Error&) {  // an older one may be whole
    }
  }
  return std::nullopt;
}

}  // namespace

CheckpointKeeper::CheckpointKeeper(const CheckpointConfig& config, Recorder& recorder,
                                   std::int64_t step, std::vector<std::chrono::milliseconds> pauses)
    : config_(config), recorder_(recorder), saved_step_(step), pauses_(std::move(pauses)) {}

// Half a minute in all: a batch system that ends a job seldom waits longer.
std::vector<std::chrono::milliseconds> CheckpointKeeper::usual_pauses() {
  using std::chrono::milliseconds;
  return {milliseconds(0),    milliseconds(1000), milliseconds(2000),
          milliseconds(4000), milliseconds(8000), milliseconds(15000)};
}

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

bool CheckpointKeeper::is_peak(const StepRow& row,
                               const std::optional<BestCheckpoint>& best) const {
  return row.evaluated && is_better(row.metrics.find(config_.keep_best), best);
}

void CheckpointKeeper::note_best(std::int64_t step, const StepRow& row,
                                 std::optional<BestCheckpoint>& best) {
  const std::string& metric = config_.keep_best;
  if (metric.empty()) return;
  const std::optional<double> value = row.metrics.find(metric);
  if (!value) {
    if (metric.starts_with("val-") && !row.evaluated) return;
    if (!std::exchange(warned_of_best_, true))
      recorder_.warn(fmt::format("checkpoint.keep_best: there is no metric '{}'", metric));
    return;
  }
  if (is_better(value, best)) best = {metric, *value, step};
}

void CheckpointKeeper::try_save(std::int64_t step, const StepRow& row,
                                std::optional<BestCheckpoint>& best, const Write& write) {
  Stopwatch clock;
  const std::optional<BestCheckpoint> best_before = best;
  note_best(step, row, best);
  try {
    recorder_.restore_directory();
    try {
      write(folder());
    } catch (const WriteError& error) {
      // What this save would prune may go first; the newest one and the good one stay.
      if (!error.is_full() || config_.keep < 2 || !prune(config_.keep - 1, best_before)) throw;
      recorder_.warn(fmt::format("step {}: {}; an older checkpoint was removed to make room", step,
                                 error.message()));
      write(folder());
    }
  } catch (...) {
    best = best_before;
    seconds_ += clock.lap();
    throw;
  }
  saved_step_ = step;
  prune(config_.keep, best);
  seconds_ += clock.lap();
}

bool CheckpointKeeper::prune(std::int64_t keep, const std::optional<BestCheckpoint>& best) const {
  if (!good_step_) return false;
  Retention retention{
      .keep = keep, .best_step = {}, .good_step = good_step_, .newest = saved_step_};
  if (best) retention.best_step = best->step;
  return !prune_checkpoints(folder(), retention).empty();
}

void CheckpointKeeper::save(std::int64_t step, const StepRow& row,
                            std::optional<BestCheckpoint>& best, const Write& write) {
  try {
    try_save(step, row, best, write);
  } catch (const NotFinite&) {
    throw;
  } catch (const RunError& error) {
    recorder_.warn(
        fmt::format("STEP {} WAS NOT SAVED: {}. The run goes on; checkpoints from before are whole",
                    step, error.message()));
  }
}

void CheckpointKeeper::save_last(std::int64_t step, const StepRow& row,
                                 std::optional<BestCheckpoint>& best, const Write& write,
                                 const std::function<bool()>& stop) {
  for (std::size_t tries = 0;; ++tries) {
    try {
      return try_save(step, row, best, write);
    } catch (const NotFinite&) {
      throw;
    } catch (const RunError& error) {
      if (may_pass(error) && tries < pauses_.size()) {
        recorder_.warn(fmt::format(
            "step {} is not saved yet: {}; trying again{}", step, error.message(),
            pauses_[tries].count() == 0 ? ""
                                        : fmt::format(" in {} s (a signal ends the waiting)",
                                                      pauses_[tries].count() / 1000)));
        if (pause(tries, stop)) continue;
      }
      const std::optional<FoundCheckpoint> before = newest_below(folder(), step);
      std::string remedy = error.context().remedy;
      if (!remedy.empty()) remedy += ", then ";
      remedy += before ? fmt::format("--resume goes on from {}", before->path.string())
                       : "start again: there is no earlier checkpoint";
      throw RunError(fmt::format("step {} was not saved: {}{}{}", step, error.context().where,
                                 error.context().where.empty() ? "" : ": ", error.problem()),
                     {.remedy = remedy});
    }
  }
}

// False where a signal ended it.
bool CheckpointKeeper::pause(std::size_t number, const std::function<bool()>& stop) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + pauses_[number];
  while (Clock::now() < end) {
    if (stop()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

void CheckpointKeeper::proved(const std::optional<BestCheckpoint>& best) {
  if (saved_step_ == 0 || good_step_ == saved_step_) return;
  good_step_ = saved_step_;
  prune(config_.keep, best);
}

RunError CheckpointKeeper::not_finite_error(const RunError& error, std::int64_t step, double lr,
                                            bool untouched) const {
  const std::int64_t below = good_step_ ? *good_step_ + 1 : untouched ? step : step + 1;
  const std::optional<FoundCheckpoint> good = newest_below(folder(), below);
  std::string problem =
      fmt::format("step {}: {} (learning rate {})", step + 1, error.problem(), lr);
  if (!good) {
    return RunError(problem + "; there is no good checkpoint",
                    {.remedy = "start anew in another record.dir with a lower optim.lr"});
  }
  std::string remedy;
  for (const StepFolder& newer : step_folders(folder())) {
    if (newer.step > good->step)
      remedy += fmt::format("remove {}, whose weights led here; ", newer.path.string());
  }
  return RunError(
      fmt::format("{}; the last good checkpoint is {}", problem, good->path.string()),
      {.remedy = remedy + "go on from it with --resume and a lower optim.lr, or in bf16 if "
                          "model.dtype is fp16"});
}

double CheckpointKeeper::take_seconds() {
  return std::exchange(seconds_, 0);
}

}  // namespace antisd::inline run
