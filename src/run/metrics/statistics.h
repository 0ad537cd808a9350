// Mean, deviation and extremes of the many values a step yields.
//
//   metrics.set("critic/rewards", summarise(rewards));   // .../mean, .../max, .../min
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace antisd::inline run {

// All NaN where there is no value, or where any value is NaN: a hole must not look like a number.
struct Statistics {
  std::int64_t count = 0;
  double mean = std::numeric_limits<double>::quiet_NaN();
  double deviation = std::numeric_limits<double>::quiet_NaN();  // of the population
  double min = std::numeric_limits<double>::quiet_NaN();
  double max = std::numeric_limits<double>::quiet_NaN();
};

// Sums run in the order of the values, so that equal values give equal bits.
Statistics summarise(std::span<const double> values);
Statistics summarise(std::span<const float> values);

}  // namespace antisd::inline run
