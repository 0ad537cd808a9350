#include "metrics/statistics.h"

#include <algorithm>
#include <cmath>

namespace antisd {
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
  // The second pass keeps the digits that the mean of squares would lose.
  double squares = 0;
  for (const T value : values)
    squares += (value - mean) * (value - mean);
  // Comparisons pass over NaN; the sum does not. Infinities of both signs sum to NaN without one.
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

double median_of(std::vector<double> values) {
  const bool has_nan = std::ranges::any_of(values, [](double v) { return std::isnan(v); });
  if (values.empty() || has_nan) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  const double below = *std::max_element(values.begin(), middle);
  return (below + *middle) / 2;
}

}  // namespace antisd
