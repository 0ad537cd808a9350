#include "report/metric_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/row_fields.h"
#include "run/metrics/metrics_file.h"

namespace antisd::inline report {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
constexpr double kLargestStep = 1e15;

// The mean of the finite values of rows [0, last] whose step is in the window that ends at `last`.
double running_mean(std::span<const std::int64_t> steps, std::span<const double> values,
                    std::size_t last) {
  double sum = 0;
  int count = 0;
  for (std::size_t row = last + 1; row-- > 0 && steps[row] > steps[last] - kMeanSteps;) {
    if (!std::isfinite(values[row])) continue;
    sum += values[row];
    ++count;
  }
  return count > 0 ? sum / count : kNothing;
}

}  // namespace

bool MetricTable::add(std::string_view line) {
  row_.clear();
  double step = -1;
  const bool whole = for_each_field(line, [&](std::string_view key, std::string_view value) {
    const std::optional<double> number = number_of(value);
    if (key == kStepMetric) {
      step = number.value_or(-1);
    } else if (key != kTimeMetric) {  // seconds since 1970 are no curve
      row_.emplace_back(key, number.value_or(kNothing));
    }
  });
  if (!whole || !(step >= 0 && step <= kLargestStep) || step != std::floor(step)) return false;
  const auto whole_step = static_cast<std::int64_t>(step);
  if (!steps_.empty() && whole_step <= steps_.back()) cut_from(whole_step);
  if (steps_.size() >= kMaxRows) {
    left_out_ = true;
    return true;
  }
  steps_.push_back(whole_step);
  first_change_ = first_change_ < 0 ? whole_step : std::min(first_change_, whole_step);
  next_column_ = 0;
  for (const auto& [name, value] : row_) {
    if (Column* column = column_for(name)) {
      column->values.resize(steps_.size(), kNothing);
      column->values.back() = value;  // a repeated key: the last one counts
    }
  }
  for (Column& column : columns_)
    column.values.resize(steps_.size(), kNothing);
  return true;
}

Column* MetricTable::column_for(std::string_view name) {
  if (next_column_ < columns_.size() && columns_[next_column_].name == name)
    return &columns_[next_column_++];
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].name != name) continue;
    next_column_ = i + 1;
    return &columns_[i];
  }
  if (columns_.size() >= kMaxColumns) {
    left_out_ = true;
    return nullptr;
  }
  columns_.push_back({std::string(name), {}});
  next_column_ = columns_.size();
  return &columns_.back();
}

void MetricTable::cut_from(std::int64_t step) {
  const auto kept = static_cast<std::size_t>(std::lower_bound(steps_.begin(), steps_.end(), step) -
                                             steps_.begin());
  steps_.resize(kept);
  for (Column& column : columns_)
    column.values.resize(kept);
  first_change_ = first_change_ < 0 ? step : std::min(first_change_, step);
}

void MetricTable::clear() {
  steps_.clear();
  columns_.clear();
  left_out_ = false;
  first_change_ = 0;
}

const Column* MetricTable::find(std::string_view name) const {
  const auto found = std::find_if(columns_.begin(), columns_.end(),
                                  [&](const Column& column) { return column.name == name; });
  return found == columns_.end() ? nullptr : &*found;
}

std::int64_t MetricTable::take_first_change() {
  return std::exchange(first_change_, -1);
}

std::int64_t bucket_width(std::int64_t last_step) {
  std::int64_t width = 1;
  while (last_step / width >= kMaxBuckets)
    width *= 2;
  return width;
}

Buckets bucketed(std::span<const std::int64_t> steps, std::span<const double> values,
                 std::int64_t width, std::int64_t from) {
  Buckets buckets;
  if (steps.empty() || steps.back() / width < from) return buckets;
  const auto count = static_cast<std::size_t>(steps.back() / width - from + 1);
  buckets.first.assign(count, kNothing);
  buckets.second.assign(count, kNothing);
  buckets.mean.assign(count, kNothing);
  auto row = static_cast<std::size_t>(std::lower_bound(steps.begin(), steps.end(), from * width) -
                                      steps.begin());
  while (row < steps.size()) {
    const std::int64_t bucket = steps[row] / width;
    const auto at = static_cast<std::size_t>(bucket - from);
    std::size_t smallest = steps.size(), largest = steps.size(), last = row;
    for (; row < steps.size() && steps[row] / width == bucket; ++row) {
      last = row;
      if (!std::isfinite(values[row])) continue;
      if (smallest == steps.size() || values[row] < values[smallest]) smallest = row;
      if (largest == steps.size() || values[row] > values[largest]) largest = row;
    }
    buckets.mean[at] = running_mean(steps, values, last);
    if (smallest == steps.size()) continue;
    buckets.first[at] = values[std::min(smallest, largest)];
    buckets.second[at] = values[std::max(smallest, largest)];
  }
  return buckets;
}

}  // namespace antisd::inline report
