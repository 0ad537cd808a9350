// Running sums of a quantity over tokens, for its mean, standard deviation and range. They add up
// over micro-batches, steps and processes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace antisd::inline algo {

struct Moments {
  std::int64_t count = 0;
  double sum = 0, sum_squares = 0;
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  std::int64_t negative = 0;  // values below 0

  void add(double value) {
    ++count;
    sum += value;
    sum_squares += value * value;
    min = std::min(min, value);
    max = std::max(max, value);
    negative += value < 0;
  }
  // Adds values of which only the sum is known; range and standard deviation do not include them.
  void add_sum(double total, std::int64_t values) {
    count += values;
    sum += total;
  }
  void add(const Moments& other) {
    count += other.count;
    sum += other.sum;
    sum_squares += other.sum_squares;
    min = std::min(min, other.min);
    max = std::max(max, other.max);
    negative += other.negative;
  }

  // NaN without values.
  double mean() const { return sum / static_cast<double>(count); }
  double deviation() const {  // of the population
    return std::sqrt(std::max(0.0, sum_squares / static_cast<double>(count) - mean() * mean()));
  }
  double negative_fraction() const {
    return static_cast<double>(negative) / static_cast<double>(count);
  }
};

}  // namespace antisd::inline algo
