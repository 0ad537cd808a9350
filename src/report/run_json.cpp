#include "report/run_json.h"

#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace antisd::inline report {
namespace {

constexpr std::string_view kTimes = "timing_s/";

// Five digits are more than a chart can show.
void append_numbers(std::string& out, std::span<const double> values) {
  out += '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    if (std::isfinite(values[i])) {
      fmt::format_to(std::back_inserter(out), "{:.5g}", values[i]);
    } else {
      out += "null";
    }
  }
  out += ']';
}

double average_of(const Json& evaluation) {
  const auto average = evaluation.find("average");
  if (average != evaluation.end()) return average->get<double>();
  double sum = 0;
  int count = 0;
  for (const auto& [name, bench] : evaluation["benches"].items()) {
    const auto avg = bench.find("avg");
    if (avg == bench.end()) continue;
    sum += avg->get<double>();
    ++count;
  }
  return count > 0 ? sum / count : -1;
}

// pass@k curves are shown for the peak and the last evaluation; those of all would be larger than
// the rest of the page.
Json evaluations_json(const std::map<std::int64_t, Json>& evaluations) {
  const std::int64_t peak = peak_step(evaluations);
  Json out = Json::array();
  for (const auto& [step, evaluation] : evaluations) {
    Json item = evaluation;
    item["step"] = step;
    if (step != peak && step != evaluations.rbegin()->first) {
      for (auto& [name, bench] : item["benches"].items()) {
        bench.erase("pass");
        bench.erase("pass_interval");
      }
    }
    out.push_back(std::move(item));
  }
  return out;
}

}  // namespace

std::int64_t peak_step(const std::map<std::int64_t, Json>& evaluations) {
  std::int64_t peak = -1;
  double best = -1;
  for (const auto& [step, evaluation] : evaluations) {
    if (step == 0 && evaluations.size() > 1) continue;  // the model before training
    const double average = average_of(evaluation);
    if (peak >= 0 && !(average > best)) continue;
    peak = step;
    best = average;
  }
  return peak;
}

Json facts_json(const RunReader& run) {
  Json warnings = Json::array(), gate = Json::array();
  for (const RunWarning& warning : run.warnings()) {
    warnings.push_back({{"text", warning.text},
                        {"first", warning.first},
                        {"last", warning.last},
                        {"count", warning.count}});
  }
  for (const GateEvent& event : run.gate_events())
    gate.push_back({event.step, event.open ? 1 : 0});
  return {{"name", run.name()},
          {"method", run.method()},
          {"seed", plain_value(run.config(), "train.seed")},
          {"steps_planned", plain_value(run.config(), "train.steps")},
          {"run", run.run()},
          {"warnings", std::move(warnings)},
          {"notes", run.notes()},
          {"gate", std::move(gate)},
          {"evaluations", evaluations_json(run.evaluations())},
          {"peak", peak_step(run.evaluations())},
          {"dumps", run.dumps()}};
}

void append_rows_json(std::string& out, const RunReader& run, std::int64_t from) {
  const MetricTable& table = run.table();
  const std::int64_t width = bucket_width(table.last_step());
  fmt::format_to(std::back_inserter(out),
                 "{{\"width\":{},\"from\":{},\"last\":{},\"written\":{},\"columns\":{{", width,
                 from, table.last_step(), run.rows_written_ns() / 1'000'000'000);
  bool is_first = true;
  for (const Column& column : table.columns()) {
    const Buckets buckets = bucketed(table.steps(), column.values, width, from);
    if (!is_first) out += ',';
    is_first = false;
    out += to_json_line(Json(column.name)) + ":[";
    append_numbers(out, buckets.first);
    out += ',';
    if (width > 1) {
      append_numbers(out, buckets.second);
    } else {
      out += "null";  // the same as the first
    }
    out += ',';
    append_numbers(out, buckets.mean);
    out += ']';
  }
  out += "},\"times\":";
  Json times = Json::object();
  for (const Column& column : table.columns()) {
    if (!column.name.starts_with(kTimes)) continue;
    double sum = 0;
    std::int64_t count = 0;
    for (const double value : column.values) {
      if (!std::isfinite(value)) continue;
      sum += value;
      ++count;
    }
    times[column.name.substr(kTimes.size())] = {sum, count};
  }
  out += to_json_line(times) + "}";
}

}  // namespace antisd::inline report
