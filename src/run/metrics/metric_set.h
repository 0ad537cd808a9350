// The named values of one step, in the order they were first set.
//
//   MetricSet metrics;
//   metrics.set("actor/lr", 1e-6);
//   metrics.set("critic/rewards", summarise(rewards));
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run/metrics/statistics.h"

namespace antisd::inline run {

struct Metric {
  std::string name;
  double value;
};

class MetricSet {
 public:
  // NaN means "no value in this step". An existing name gets the new value.
  void set(std::string_view name, double value);
  // NAME/mean, NAME/max and NAME/min.
  void set(const std::string& name, const Statistics& statistics);
  void add(const MetricSet& others);

  std::optional<double> find(std::string_view name) const;
  const std::vector<Metric>& values() const { return values_; }

 private:
  std::vector<Metric> values_;
};

}  // namespace antisd::inline run
