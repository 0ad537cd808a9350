// When a run is saved and which of its checkpoints stay.
//
//   CheckpointKeeper keeper(config.checkpoint, recorder);
//   if (keeper.due(state.step)) keeper.save(state.step, metrics, state.best, [&] { ... });
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "config/run_config.h"
#include "io/json.h"
#include "metrics/metric_set.h"
#include "trainer/recorder.h"

namespace antisd {

// The checkpoint that checkpoint.keep_best never prunes.
struct BestCheckpoint {
  std::string metric;
  double value = 0;
  std::int64_t step = 0;
};

// Null where there is none.
Json to_json(const std::optional<BestCheckpoint>& best);
std::optional<BestCheckpoint> best_checkpoint_from(const Json& json);

class CheckpointKeeper {
 public:
  // Borrows the recorder. `step`: what was saved, or begun with.
  CheckpointKeeper(const CheckpointConfig& config, Recorder& recorder, std::int64_t step)
      : config_(config), recorder_(recorder), saved_step_(step) {}

  bool due(std::int64_t step) const { return config_.every > 0 && step % config_.every == 0; }
  // Whether an evaluation found this step the best so far: it is saved then, due or not.
  bool is_peak(const MetricSet& metrics, const std::optional<BestCheckpoint>& best) const;
  bool saved(std::int64_t step) const { return saved_step_ == step; }  // or tried

  // `write` saves into the folder it is given; `best` is brought up to date before. What the disk
  // refuses is warned about, and the run goes on.
  void save(std::int64_t step, const MetricSet& metrics, std::optional<BestCheckpoint>& best,
            const std::function<void(const std::filesystem::path& checkpoints)>& write);

  // Seconds of the saves since it was asked last.
  double take_seconds();

 private:
  bool is_better(std::optional<double> value, const std::optional<BestCheckpoint>& best) const;
  // What evaluation finds is there at its steps alone.
  void note_best(std::int64_t step, const MetricSet& metrics, std::optional<BestCheckpoint>& best);

  CheckpointConfig config_;
  Recorder& recorder_;
  std::int64_t saved_step_;
  double seconds_ = 0;
  bool warned_of_best_ = false;
};

}  // namespace antisd
