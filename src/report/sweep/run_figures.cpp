#include "report/sweep/run_figures.h"

#include <cmath>

namespace antisd::inline report {
namespace {

double last_of(const MetricTable& table, std::string_view name) {
  const Column* const column = table.find(name);
  return column == nullptr || column->values.empty() ? std::numeric_limits<double>::quiet_NaN()
                                                     : column->values.back();
}

std::vector<EvaluatedStep> accuracy_of(const MetricTable& table) {
  std::vector<EvaluatedStep> curve;
  for (std::size_t row = 0; row < table.steps().size(); ++row) {
    double sum = 0;
    int count = 0;
    for (const Column& column : table.columns()) {
      const bool is_accuracy = column.name.starts_with("val-core/") &&
                               column.name.find("/acc/mean@") != std::string::npos;
      if (!is_accuracy || std::isnan(column.values[row])) continue;
      sum += column.values[row];
      ++count;
    }
    if (count > 0) curve.push_back({table.steps()[row], sum / count});
  }
  return curve;
}

}  // namespace

RunFigures figures_of(const MetricTable& table) {
  RunFigures figures{.step = table.last_step(),
                     .reward = last_of(table, "critic/rewards/mean"),
                     .tokens = last_of(table, "response_length/mean"),
                     .lambda = last_of(table, "antisd/lambda"),
                     .accuracy = accuracy_of(table)};
  if (const Column* const lambda = table.find("antisd/lambda")) {
    bool was_open = false;
    for (const double value : lambda->values) {
      const bool is_open = value > 0;
      figures.steps_open += is_open ? 1 : 0;
      figures.gate_closings += was_open && !is_open ? 1 : 0;
      was_open = is_open;
    }
  }
  return figures;
}

}  // namespace antisd::inline report
