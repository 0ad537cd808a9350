#include "eval/results/summary.h"

#include <cmath>

#include <fmt/format.h>

#include "algo/evaluation.h"
#include "core/error.h"
#include "eval/results/text_table.h"
#include "io/atomic_file.h"

namespace antisd::inline eval {
namespace {

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json pair(const Interval& interval) {
  return Json::array({number(interval.low), number(interval.high)});
}

double number_from(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_number() ? at->get<double>() : kNoFigure;
}

std::int64_t integer_from(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_number_integer() ? at->get<std::int64_t>() : 0;
}

Interval interval_from(const Json& object, const std::string& key) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_array() || at->size() != 2) return {};
  const auto end = [](const Json& value) {
    return value.is_number() ? value.get<double>() : kNoFigure;
  };
  return {end((*at)[0]), end((*at)[1])};
}

Json to_json(const BenchSummary& bench) {
  Json pass = Json::object(), intervals = Json::object();
  for (std::size_t i = 0; i < bench.pass.size(); ++i) {
    pass[std::to_string(i + 1)] = number(bench.pass[i]);
    intervals[std::to_string(i + 1)] = pair(bench.pass_interval[i]);
  }
  return {{"problems", bench.problems},
          {"n", bench.n},
          {"avg", number(bench.avg)},
          {"avg_interval", pair(bench.avg_interval)},
          {"pass", std::move(pass)},
          {"pass_interval", std::move(intervals)},
          {"truncated", number(bench.truncated)},
          {"mean_tokens", number(bench.mean_tokens)},
          {"extraction_failed", number(bench.extraction_failed)},
          {"grader_failed", bench.grader_failed},
          {"samples", bench.samples}};
}

BenchSummary bench_from(const Json& json) {
  BenchSummary bench;
  bench.problems = integer_from(json, "problems");
  bench.n = integer_from(json, "n");
  bench.samples = integer_from(json, "samples");
  bench.avg = number_from(json, "avg");
  bench.avg_interval = interval_from(json, "avg_interval");
  bench.truncated = number_from(json, "truncated");
  bench.mean_tokens = number_from(json, "mean_tokens");
  bench.extraction_failed = number_from(json, "extraction_failed");
  bench.grader_failed = integer_from(json, "grader_failed");
  const auto pass = json.find("pass");
  if (pass == json.end() || !pass->is_object()) return bench;
  const Json intervals = json.value("pass_interval", Json::object());
  for (std::size_t k = 1; k <= pass->size() && pass->contains(std::to_string(k)); ++k) {
    bench.pass.push_back(number_from(*pass, std::to_string(k).c_str()));
    bench.pass_interval.push_back(interval_from(intervals, std::to_string(k)));
  }
  return bench;
}

}  // namespace

const BenchSummary* EvalSummary::find(const std::string& bench) const {
  for (const auto& [name, summary] : benches)
    if (name == bench) return &summary;
  return nullptr;
}

BenchSummary summarise_bench(std::span<const SampleRow> rows, std::int64_t problems,
                             std::int64_t n) {
  BenchSummary bench{.problems = problems, .n = n, .samples = std::ssize(rows)};
  std::int64_t truncated = 0, tokens = 0, without_answer = 0;
  for (const SampleRow& row : rows) {
    truncated += row.truncated;
    tokens += row.tokens;
    without_answer += row.has_no_answer();
    bench.grader_failed += !row.correct;
  }
  if (!rows.empty()) {
    const double samples = static_cast<double>(rows.size());
    bench.truncated = static_cast<double>(truncated) / samples;
    bench.mean_tokens = static_cast<double>(tokens) / samples;
    bench.extraction_failed = static_cast<double>(without_answer) / samples;
  }
  const std::vector<ProblemCount> counts = count_problems(rows, problems);
  bench.avg_interval = accuracy_interval(counts);
  for (std::int64_t k = 1; k <= n; ++k) {
    std::vector<double> values;
    double sum = 0;
    for (const ProblemCount& count : counts) {
      if (count.graded < k) continue;
      values.push_back(pass_at_k(count.graded, count.right, k));
      sum += values.back();
    }
    bench.pass.push_back(values.empty() ? kNoFigure : sum / static_cast<double>(values.size()));
    bench.pass_interval.push_back(k == 1 ? bench.avg_interval : mean_interval(values));
  }
  if (!bench.pass.empty()) bench.avg = bench.pass.front();
  return bench;
}

void summarise_average(EvalSummary& summary) {
  std::vector<Estimate> estimates;
  double sum = 0;
  for (const auto& [name, bench] : summary.benches) {
    estimates.push_back({bench.avg, bench.avg_interval});
    sum += bench.avg;
  }
  summary.average = estimates.empty() ? kNoFigure : sum / static_cast<double>(estimates.size());
  summary.average_interval = average_interval(estimates);
}

Json to_json(const EvalSummary& summary) {
  Json benches = Json::object();
  for (const auto& [name, bench] : summary.benches)
    benches[name] = to_json(bench);
  const EvalSettings& settings = summary.settings;
  return {{"model", summary.model},
          {"step", summary.step ? Json(*summary.step) : Json(nullptr)},
          {"settings",
           {{"temperature", number(settings.temperature)},
            {"top_p", number(settings.top_p)},
            {"max_sequence_tokens", settings.max_sequence_tokens},
            {"seed", settings.seed}}},
          {"benches", std::move(benches)},
          {"average", number(summary.average)},
          {"average_interval", pair(summary.average_interval)}};
}

EvalSummary summary_from(const Json& json, const std::string& where) {
  if (!json.is_object() || !json.contains("benches") || !json["benches"].is_object()) {
    throw InputError("not the summary of an evaluation",
                     {.where = where, .remedy = "evaluate again"});
  }
  EvalSummary summary;
  if (json.contains("model") && json["model"].is_string()) summary.model = json["model"];
  if (json.contains("step") && json["step"].is_number_integer()) summary.step = json["step"];
  if (json.contains("settings") && json["settings"].is_object()) {
    const Json& settings = json["settings"];
    summary.settings = {number_from(settings, "temperature"), number_from(settings, "top_p"),
                        integer_from(settings, "max_sequence_tokens"),
                        integer_from(settings, "seed")};
  }
  for (const auto& [name, bench] : json["benches"].items())
    if (bench.is_object()) summary.benches.emplace_back(name, bench_from(bench));
  summary.average = number_from(json, "average");
  summary.average_interval = interval_from(json, "average_interval");
  return summary;
}

void write_summary(const std::filesystem::path& file, const EvalSummary& summary) {
  write_file_atomically(file, to_json_line(to_json(summary)) + "\n");
}

EvalSummary read_summary(const std::filesystem::path& file) {
  return summary_from(parse_json(read_file(file), file.string()), file.string());
}

std::vector<std::int64_t> shown_k(const std::vector<std::int64_t>& asked, std::int64_t n) {
  std::vector<std::int64_t> shown;
  if (asked.empty()) {
    for (std::int64_t k = 1; k <= n; k *= 2) {
      shown.push_back(k);
      if (k > n / 2) break;  // avoids overflow
    }
    return shown;
  }
  for (const std::int64_t k : asked)
    if (k <= n) shown.push_back(k);
  return shown;
}

std::string summary_table(const EvalSummary& summary, const std::vector<std::int64_t>& k) {
  std::vector<std::int64_t> columns;  // of all benchmarks
  for (const auto& [name, bench] : summary.benches)
    for (const std::int64_t shown : shown_k(k, bench.n))
      if (shown > 1 && std::find(columns.begin(), columns.end(), shown) == columns.end())
        columns.push_back(shown);
  std::sort(columns.begin(), columns.end());
  TextTable table;
  std::vector<std::string> head = {"benchmark", "problems", "n", "avg", "95 %"};
  for (const std::int64_t shown : columns)
    head.push_back(fmt::format("pass@{}", shown));
  for (const char* name : {"truncated", "tokens", "no answer", "ungraded"})
    head.emplace_back(name);
  table.add(head);
  for (const auto& [name, bench] : summary.benches) {
    std::vector<std::string> line = {name, std::to_string(bench.problems), std::to_string(bench.n),
                                     percent_text(bench.avg), interval_text(bench.avg_interval)};
    for (const std::int64_t shown : columns)
      line.push_back(shown <= std::ssize(bench.pass)
                         ? percent_text(bench.pass[static_cast<std::size_t>(shown) - 1])
                         : "-");
    line.push_back(percent_text(bench.truncated));
    line.push_back(std::isfinite(bench.mean_tokens) ? fmt::format("{:.0f}", bench.mean_tokens)
                                                    : "-");
    line.push_back(percent_text(bench.extraction_failed));
    line.push_back(std::to_string(bench.grader_failed));
    table.add(std::move(line));
  }
  if (summary.benches.size() > 1)
    table.add({"average", "", "", percent_text(summary.average),
               interval_text(summary.average_interval)});
  return table.text();
}

}  // namespace antisd::inline eval
