#include "metrics/metrics_file.h"

#include <cmath>
#include <optional>
#include <string>

#include "core/error.h"
#include "io/atomic_file.h"
#include "io/json.h"

namespace antisd {
namespace {

// Nothing where the line is no row of a step.
std::optional<std::int64_t> step_of(std::string_view line) {
  try {
    const Json row = parse_json(line, "");
    if (!row.is_object()) return std::nullopt;
    const auto step = row.find(kStepMetric);
    if (step == row.end() || !step->is_number_integer()) return std::nullopt;
    return step->get<std::int64_t>();
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

void MetricsFile::write(std::int64_t step, const MetricSet& metrics) {
  Json row = Json::object();
  row[kStepMetric] = step;
  for (const Metric& metric : metrics.values()) {
    if (metric.name == kStepMetric) continue;
    row[metric.name] = std::isfinite(metric.value) ? Json(metric.value) : Json(nullptr);
  }
  file_.append(to_json_line(row) + "\n");
}

MetricsCut cut_metrics(const std::filesystem::path& path, std::int64_t last_step) {
  MetricsCut cut;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return cut;
  const std::string text = read_file(path);
  std::string kept;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const bool is_torn = end == std::string::npos;
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = is_torn ? text.size() : end + 1;
    if (line.empty()) continue;
    // A torn row that happens to parse may be a number short.
    const std::optional<std::int64_t> step = is_torn ? std::nullopt : step_of(line);
    if (!step) {
      ++cut.broken;
    } else if (*step > last_step || *step <= cut.last_step) {
      ++cut.later;
    } else {
      ++cut.kept;
      cut.last_step = *step;
      kept.append(line).push_back('\n');
    }
  }
  if (kept != text) write_file_atomically(path, kept);
  return cut;
}

}  // namespace antisd
