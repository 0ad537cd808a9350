#include "run/checkpoint/checkpoint_keeper.h"

#include <cmath>
#include <numeric>

#include "core/start_thread.h"
#include "core/stopwatch.h"
#include "dist/agreement.h"
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
                                   Communicator& ranks, std::int64_t step,
                                   std::vector<std::chrono::milliseconds> pauses)
    : config_(config),
      recorder_(recorder),
      ranks_(ranks.beside()),
      saved_step_(step),
      pauses_(std::move(pauses)) {}

CheckpointKeeper::~CheckpointKeeper() {
  if (begun_) begun_->thread.join();
}

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

CheckpointKeeper::Save CheckpointKeeper::prepare(std::int64_t step, const StepRow& row,
                                                 std::optional<BestCheckpoint>& best) {
  Save save{.step = step, .best_before = best};
  note_best(step, row, best);
  save.best = best;
  return save;
}

void CheckpointKeeper::save_once(const Save& save, const Write& write) {
  recorder_.restore_directory();
  try {
    write();
  } catch (const WriteError& error) {
    // What this save would prune may go first; the newest one and the good one stay.
    if (!error.is_full() || config_.keep < 2 ||
        !prune(config_.keep - 1, save.best_before, saved_step_))
      throw;
    recorder_.warn(fmt::format("step {}: {}; an older checkpoint was removed to make room",
                               save.step, error.message()));
    write();
  }
  prune(config_.keep, save.best, save.step);
}

bool CheckpointKeeper::prune(std::int64_t keep, const std::optional<BestCheckpoint>& best,
                             std::int64_t newest) const {
  if (!good_step_ || !recorder_.writes()) return false;
  Retention retention{.keep = keep, .best_step = {}, .good_step = good_step_, .newest = newest};
  if (best) retention.best_step = best->step;
  return !prune_checkpoints(folder(), retention).empty();
}

bool CheckpointKeeper::together(const Writing& writing,
                                const std::function<bool(const Write&)>& save) {
  bool saved = false;
  lead(
      *ranks_,
      [&](const std::function<void()>& call) {
        saved = save([&] { writing.write(folder(), *ranks_, call); });
      },
      [&] { writing.help(*ranks_); });
  return first_says(*ranks_, saved ? "saved" : "") == "saved";
}

bool CheckpointKeeper::save_or_warn(const Save& save, const Write& write) {
  try {
    save_once(save, write);
    return true;
  } catch (const NotFinite&) {
    throw;
  } catch (const RankLost&) {
    throw;
  } catch (const RunError& error) {
    recorder_.warn(
        fmt::format("STEP {} WAS NOT SAVED: {}. The run goes on; checkpoints from before are whole",
                    save.step, error.message()));
    return false;
  }
}

void CheckpointKeeper::begin_save(std::int64_t step, const StepRow& row,
                                  std::optional<BestCheckpoint>& best, const MakeWriting& make) {
  finish_save(best);
  Stopwatch clock;
  begun_ = std::make_unique<Save>(prepare(step, row, best));
  try {
    begun_->thread = start_thread([this, save = begun_.get(), writing = make()] {
      try {
        save->saved =
            together(writing, [&](const Write& write) { return save_or_warn(*save, write); });
      } catch (...) {
        save->failure = std::current_exception();
      }
    });
  } catch (...) {
    begun_.reset();
    throw;
  }
  seconds_ += clock.lap();
}

void CheckpointKeeper::finish_save(std::optional<BestCheckpoint>& best) {
  if (!begun_) return;
  Stopwatch clock;
  ranks_->enter(fmt::format("saving of step {}", begun_->step));
  begun_->thread.join();
  seconds_ += clock.lap();
  const std::unique_ptr<Save> save = std::move(begun_);
  if (save->saved) {
    saved_step_ = save->step;
  } else {
    best = save->best_before;
  }
  if (save->failure) std::rethrow_exception(save->failure);
}

void CheckpointKeeper::save_last(std::int64_t step, const StepRow& row,
                                 std::optional<BestCheckpoint>& best, const MakeWriting& make,
                                 const std::function<bool()>& stop) {
  finish_save(best);
  if (saved(step)) return;
  Stopwatch clock;
  const Save save = prepare(step, row, best);
  ranks_->enter(fmt::format("saving of step {}", step));
  try {
    together(make(), [&](const Write& write) {
      save_until(save, write, stop);
      return true;
    });
  } catch (...) {
    best = save.best_before;
    throw;
  }
  saved_step_ = step;
  seconds_ += clock.lap();
}

void CheckpointKeeper::save_until(const Save& save, const Write& write,
                                  const std::function<bool()>& stop) {
  const std::int64_t step = save.step;
  for (std::size_t tries = 0;; ++tries) {
    try {
      return save_once(save, write);
    } catch (const NotFinite&) {
      throw;
    } catch (const RankLost&) {
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
  prune(config_.keep, best, saved_step_);
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
