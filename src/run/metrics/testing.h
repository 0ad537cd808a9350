// For tests only: which metrics differ between two runs that compute the same.
#pragma once

#include <string_view>

#include "run/metrics/metrics_file.h"

namespace antisd::testing {

// Times, and what follows from them or from the machine.
inline bool is_time_metric(std::string_view name) {
  return name == kTimeMetric || name.starts_with("timing_") || name.starts_with("perf/");
}

}  // namespace antisd::testing
