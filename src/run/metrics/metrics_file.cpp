#include "run/metrics/metrics_file.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <string>

#include "core/error.h"
#include "io/atomic_file.h"
#include "io/json.h"

namespace antisd::inline run {
namespace {

// Nothing if the line is not a step's row.
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

double time_now() {
  using namespace std::chrono;
  const auto since = system_clock::now().time_since_epoch();
  return static_cast<double>(duration_cast<milliseconds>(since).count()) / 1000;
}

std::string row_text(std::int64_t step, const MetricSet& metrics) {
  Json row = Json::object();
  row[kStepMetric] = step;
  row[kTimeMetric] = time_now();  // unless `metrics` are of a row that has one
  for (const Metric& metric : metrics.values()) {
    if (metric.name == kStepMetric) continue;
    row[metric.name] = std::isfinite(metric.value) ? Json(metric.value) : Json(nullptr);
  }
  return to_json_line(row) + "\n";
}

MetricSet metrics_of(std::string_view line) {
  MetricSet metrics;
  const Json row = parse_json(line, "");
  for (const auto& [name, value] : row.items()) {
    if (name == kStepMetric) continue;
    metrics.set(name, value.is_number() ? value.get<double>() : std::nan(""));
  }
  return metrics;
}

void for_each_line(std::string_view text, const std::function<void(std::string_view)>& use) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) use(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

void MetricsFile::write(std::int64_t step, const MetricSet& metrics) {
  file_.append(row_text(step, metrics));
}

std::optional<MetricSet> find_metrics(const std::filesystem::path& path, std::int64_t step) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  std::optional<MetricSet> found;
  for_each_line(read_file(path), [&](std::string_view line) {
    if (step_of(line) == step) found = metrics_of(line);
  });
  return found;
}

void amend_metrics(const std::filesystem::path& path, std::int64_t step, const MetricSet& more) {
  MetricSet row = find_metrics(path, step).value_or(MetricSet());
  row.add(more);
  std::string text;
  bool replaced = false;
  std::error_code ignored;
  const std::string before = std::filesystem::exists(path, ignored) ? read_file(path) : "";
  for_each_line(before, [&](std::string_view line) {
    const bool is_row = step_of(line) == step;
    text += is_row ? row_text(step, row) : std::string(line) + "\n";
    replaced |= is_row;
  });
  if (!replaced) text += row_text(step, row);
  write_file_atomically(path, text);
}

MetricsCut cut_metrics(const std::filesystem::path& path, std::int64_t last_step) {
  MetricsCut cut;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return cut;
  const std::string text = read_file(path);
  std::string kept;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end == std::string::npos ? text.size() : end + 1;
    if (line.empty()) continue;
    // A row is complete with its last brace, even if a kill lost the newline.
    const std::optional<std::int64_t> step = step_of(line);
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

}  // namespace antisd::inline run
