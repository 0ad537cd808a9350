#include "run/metrics/metric_set.h"

#include <algorithm>

namespace antisd::inline run {

// A step has tens of values: a linear search costs less than an index.
void MetricSet::set(std::string_view name, double value) {
  const auto found = std::ranges::find(values_, name, &Metric::name);
  if (found != values_.end()) {
    found->value = value;
  } else {
    values_.push_back({std::string(name), value});
  }
}

void MetricSet::set(const std::string& name, const Statistics& statistics) {
  set(name + "/mean", statistics.mean);
  set(name + "/max", statistics.max);
  set(name + "/min", statistics.min);
}

void MetricSet::add(const MetricSet& others) {
  for (const Metric& metric : others.values())
    set(metric.name, metric.value);
}

std::optional<double> MetricSet::find(std::string_view name) const {
  const auto found = std::ranges::find(values_, name, &Metric::name);
  if (found == values_.end()) return std::nullopt;
  return found->value;
}

}  // namespace antisd::inline run
