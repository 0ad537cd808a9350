// What a run has told so far, read from its directory while it is being written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <vector>

#include "algo/evaluation.h"
#include "metrics/metrics_tail.h"

namespace antisd {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct GateEvent {
  std::int64_t step = 0;
  bool opened = false;
};

class RunView {
 public:
  explicit RunView(const std::filesystem::path& run) : tail_(run / "metrics.jsonl") {}

  // Reads what is new. True where there was something.
  bool refresh();

  std::int64_t step() const { return step_; }
  double reward() const { return reward_; }  // of the last step
  double tokens() const { return tokens_; }  // mean length of the last step's responses
  double lambda() const { return lambda_; }  // of the last step
  const std::vector<EvaluatedStep>& accuracy() const { return accuracy_; }  // on held-out problems
  const std::vector<GateEvent>& gate_events() const { return gate_events_; }
  std::int64_t steps_open() const { return steps_open_; }  // with lambda > 0

 private:
  explicit RunView(MetricsTail tail) : tail_(std::move(tail)) {}
  void take(const Json& row);

  MetricsTail tail_;
  int restarts_ = 0;
  std::int64_t step_ = 0, steps_open_ = 0;
  double reward_ = kUnknown, tokens_ = kUnknown, lambda_ = kUnknown;
  std::vector<EvaluatedStep> accuracy_;
  std::vector<GateEvent> gate_events_;
};

}  // namespace antisd
