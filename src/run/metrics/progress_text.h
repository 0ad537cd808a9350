// One line of progress, cut to the available width:
//
//   train 12/200 [##..............................]  6%  1.2 step/s  ETA 2m36s  reward 0.4219
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/metrics/metric_set.h"

namespace antisd::inline run {

struct ProgressState {
  std::string label;  // "train"
  std::string unit;   // "step"
  std::int64_t done = 0;
  std::int64_t total = 0;      // 0: unknown; then without bar, percentage and ETA
  double per_second = 0;       // 0: not yet known
  std::vector<Metric> values;  // the most important first
};

// At most `columns` wide: what does not fit is dropped, the bar first, then from the right.
std::string progress_bar_text(const ProgressState& state, int columns);
// The same without a bar, for logs: everything, of any length.
std::string progress_line_text(const ProgressState& state);

std::string duration_text(double seconds);  // "45s", "3m10s", "2h05m", "3d04h"

}  // namespace antisd::inline run
