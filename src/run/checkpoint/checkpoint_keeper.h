// When a run is saved and which of its checkpoints stay.
//
//   CheckpointKeeper keeper(config.checkpoint, recorder, ranks, state.step);
//   if (keeper.due(state.step)) keeper.begin_save(state.step, {metrics}, state.best, writing);
//   sample_groups();                     // while the checkpoint is written
//   keeper.finish_save(state.best);      // before the weights change
//   update();
//   keeper.proved(state.best);
//
// Weights may be finite and useless: a step of a far too large learning rate shows only when the
// next one computes with them. So a checkpoint counts as good once a whole step was computed from
// its weights, and the newest good one is never pruned.
//
// Rank 0 writes and prunes; the others give what they hold and follow its decisions. All ranks make
// the same calls.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "config/run_config.h"
#include "core/error.h"
#include "dist/communicator.h"
#include "io/json.h"
#include "run/checkpoint/checkpoint.h"
#include "run/metrics/metric_set.h"
#include "run/recorder.h"
#include "run/run_files.h"

namespace antisd::inline run {

// The checkpoint that checkpoint.keep_best never prunes.
struct BestCheckpoint {
  std::string metric;
  double value = 0;
  std::int64_t step = 0;
};

// The metrics of a step.
struct StepRow {
  MetricSet metrics = {};
  bool evaluated = false;  // what an evaluation found is among them
};

// Null where there is none.
Json to_json(const std::optional<BestCheckpoint>& best);
std::optional<BestCheckpoint> best_checkpoint_from(const Json& json);

class CheckpointKeeper {
 public:
  // How a checkpoint is written by rank 0, and what the other ranks do each time it calls them. In
  // another thread than the caller's, where `ranks` is for it alone.
  struct Writing {
    std::function<void(const std::filesystem::path& checkpoints, Communicator& ranks,
                       const std::function<void()>& call_ranks)>
        write;
    std::function<void(Communicator& ranks)> help = {};
  };
  // Makes it of the state that is to be saved.
  using MakeWriting = std::function<Writing()>;

  // Borrows recorder and ranks; all ranks make one. `step`: what was begun with, saved unless it is
  // 0. `pauses` are those between the tries of save_last.
  CheckpointKeeper(const CheckpointConfig& config, Recorder& recorder, Communicator& ranks,
                   std::int64_t step,
                   std::vector<std::chrono::milliseconds> pauses = usual_pauses());
  ~CheckpointKeeper();  // waits for a save

  bool due(std::int64_t step) const { return config_.every > 0 && step % config_.every == 0; }
  // Whether an evaluation found this step the best so far: it is saved then, due or not.
  bool is_peak(const StepRow& row, const std::optional<BestCheckpoint>& best) const;
  bool saved(std::int64_t step) const { return saved_step_ == step; }

  // Brings `best` up to date, then saves in another thread. What is saved must not change until
  // finish_save().
  void begin_save(std::int64_t step, const StepRow& row, std::optional<BestCheckpoint>& best,
                  const MakeWriting& make);
  // Waits for the save that was begun, if there is one. What the disk refuses is warned about, and
  // the run goes on; `best` is then what it was before. NotFinite of save_checkpoint.
  void finish_save(std::optional<BestCheckpoint>& best);
  // The save that a run ends with: tried again, with pauses, while that may help and `stop` does
  // not say otherwise. RunError, "not saved", where it comes to nothing.
  void save_last(std::int64_t step, const StepRow& row, std::optional<BestCheckpoint>& best,
                 const MakeWriting& make, const std::function<bool()>& stop);

  // A whole step was computed from the weights that were saved last, or from later ones.
  void proved(const std::optional<BestCheckpoint>& best);
  // The error of a step whose numbers are not finite, with the last good checkpoint and what to do.
  // `untouched`: the step failed with the weights that it began with, those after `step` steps.
  RunError not_finite_error(const RunError& error, std::int64_t step, double lr,
                            bool untouched) const;

  // Seconds that training has waited for saves since it was asked last.
  double take_seconds();

 private:
  static std::vector<std::chrono::milliseconds> usual_pauses();
  bool is_better(std::optional<double> value, const std::optional<BestCheckpoint>& best) const;
  // What evaluation finds is there at its steps alone.
  void note_best(std::int64_t step, const StepRow& row, std::optional<BestCheckpoint>& best);
  struct Save {
    std::int64_t step = 0;
    std::optional<BestCheckpoint> best_before, best;
    bool saved = false;
    std::exception_ptr failure = {};
    std::thread thread = {};
  };
  using Write = std::function<void()>;
  Save prepare(std::int64_t step, const StepRow& row, std::optional<BestCheckpoint>& best);
  // Runs `save` on rank 0, with a function that writes. What it returned, on every rank.
  bool together(const Writing& writing, const std::function<bool(const Write&)>& save);
  bool save_or_warn(const Save& save, const Write& write);
  void save_once(const Save& save, const Write& write);
  void save_until(const Save& save, const Write& write, const std::function<bool()>& stop);
  // Keeps so many; nothing goes before a checkpoint is known to be good. Whether anything went.
  bool prune(std::int64_t keep, const std::optional<BestCheckpoint>& best,
             std::int64_t newest) const;
  bool pause(std::size_t number, const std::function<bool()>& stop) const;
  std::filesystem::path folder() const { return recorder_.directory() / kCheckpointsFolder; }

  CheckpointConfig config_;
  Recorder& recorder_;
  std::unique_ptr<Communicator> ranks_;  // for saves alone, whichever thread makes them
  std::int64_t saved_step_;
  std::optional<std::int64_t> good_step_;
  std::vector<std::chrono::milliseconds> pauses_;
  double seconds_ = 0;
  bool warned_of_best_ = false;
  std::unique_ptr<Save> begun_;
};

}  // namespace antisd::inline run
