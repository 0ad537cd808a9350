#include "sweep/run_view.h"

#include <cmath>

#include "metrics/metrics_file.h"

namespace antisd {
namespace {

double number(const Json& row, const char* name) {
  const auto found = row.find(name);
  return found != row.end() && found->is_number() ? found->get<double>() : kUnknown;
}

// The unweighted mean over the benchmarks of avg@n.
double average_accuracy(const Json& row) {
  double sum = 0;
  int count = 0;
  for (const auto& [name, value] : row.items()) {
    if (!name.starts_with("val-core/") || name.find("/acc/mean@") == std::string::npos) continue;
    if (!value.is_number()) continue;
    sum += value.get<double>();
    ++count;
  }
  return count == 0 ? kUnknown : sum / count;
}

}  // namespace

bool RunView::refresh() {
  const std::vector<Json> rows = tail_.read();
  if (tail_.restarts() != restarts_) {
    const int restarts = tail_.restarts();
    MetricsTail tail = tail_;
    *this = RunView(std::move(tail));
    restarts_ = restarts;
  }
  for (const Json& row : rows)
    take(row);
  return !rows.empty();
}

void RunView::take(const Json& row) {
  const double step = number(row, kStepMetric);
  if (std::isnan(step)) return;
  step_ = static_cast<std::int64_t>(step);
  const double accuracy = average_accuracy(row);
  if (!std::isnan(accuracy)) accuracy_.push_back({step_, accuracy});
  if (!row.contains("critic/rewards/mean")) return;  // an evaluation before the first step
  reward_ = number(row, "critic/rewards/mean");
  tokens_ = number(row, "response_length/mean");
  const double lambda = number(row, "antisd/lambda");
  if (lambda > 0) ++steps_open_;
  const bool was_open = lambda_ > 0, is_open = lambda > 0;
  if (was_open != is_open) gate_events_.push_back({step_, is_open});
  lambda_ = lambda;
}

}  // namespace antisd
