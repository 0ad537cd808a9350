// The figures of a run that a sweep shows while it runs and uses at the end.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "algo/evaluation.h"
#include "report/run_reader.h"

namespace antisd::inline report {

struct RunFigures {
  std::int64_t step = 0;
  // Of the last step; NaN if there is none.
  double reward = std::numeric_limits<double>::quiet_NaN();
  double tokens = std::numeric_limits<double>::quiet_NaN();  // mean length of its responses
  double lambda = std::numeric_limits<double>::quiet_NaN();
  // On held-out problems: the unweighted mean over the benchmarks of avg@n, by step.
  std::vector<EvaluatedStep> accuracy = {};
  std::int64_t steps_open = 0;     // with lambda > 0
  std::int64_t gate_closings = 0;  // from a step with lambda > 0 to one without
};

RunFigures figures_of(const MetricTable& table);

}  // namespace antisd::inline report
