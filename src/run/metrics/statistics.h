// Mean, standard deviation, minimum and maximum of a step's values.
//
//   metrics.set("critic/rewards", summarise(rewards));   // .../mean, .../max, .../min
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace antisd::inline run {

// All NaN if there is no value or any value is NaN, so that a missing value never looks like a
// number.
struct Statistics {
  std::int64_t count = 0;
  double mean = std::numeric_limits<double>::quiet_NaN();
  double deviation = std::numeric_limits<double>::quiet_NaN();  // of the population
  double min = std::numeric_limits<double>::quiet_NaN();
  double max = std::numeric_limits<double>::quiet_NaN();
};

// Sums are in the order of the values, so that equal input gives equal bits.
Statistics summarise(std::span<const double> values);
Statistics summarise(std::span<const float> values);

}  // namespace antisd::inline run
