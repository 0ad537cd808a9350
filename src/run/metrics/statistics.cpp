#include "run/metrics/statistics.h"

#include <algorithm>
#include <cmath>

namespace antisd::inline run {
namespace {

template <typename T>
Statistics summarise_values(std::span<const T> values) {
  Statistics result;
  result.count = static_cast<std::int64_t>(values.size());
  if (values.empty()) return result;
  double sum = 0, min = values[0], max = values[0];
  for (const T value : values) {
    sum += value;
    min = std::min<double>(min, value);
    max = std::max<double>(max, value);
  }
  const double mean = sum / static_cast<double>(values.size());
  // A second pass keeps the digits that the mean of squares would lose.
  double squares = 0;
  for (const T value : values)
    squares += (value - mean) * (value - mean);
  // Comparisons ignore NaN, the sum does not. Infinities of both signs sum to NaN without any.
  if (std::isnan(sum) && std::ranges::any_of(values, [](T v) { return std::isnan(v); })) {
    return result;
  }
  result.mean = mean;
  result.deviation = std::sqrt(squares / static_cast<double>(values.size()));
  result.min = min;
  result.max = max;
  return result;
}

}  // namespace

Statistics summarise(std::span<const double> values) {
  return summarise_values(values);
}

Statistics summarise(std::span<const float> values) {
  return summarise_values(values);
}

}  // namespace antisd::inline run
