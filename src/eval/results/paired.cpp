#include "eval/results/paired.h"

#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "eval/results/bench_rows.h"
#include "eval/results/summary.h"
#include "eval/results/text_table.h"
#include "run/run_files.h"

namespace antisd::inline eval {
namespace {

namespace fs = std::filesystem;

// Problems with the same id are told apart by their order.
using Problems = std::map<std::pair<std::string, int>, ProblemCount>;

Problems problems_of(const fs::path& file) {
  std::map<std::int64_t, std::pair<std::string, ProblemCount>> by_place;
  for (const SampleRow& row : read_rows(file)) {
    auto& [id, count] = by_place[row.problem];
    id = row.id;
    count.graded += row.correct.has_value();
    count.right += row.correct.value_or(false);
  }
  Problems problems;
  std::map<std::string, int> seen;
  for (const auto& [place, problem] : by_place)
    problems[{problem.first, seen[problem.first]++}] = problem.second;
  return problems;
}

Difference difference_of(const fs::path& a, const fs::path& b) {
  const Problems ours = problems_of(a), theirs = problems_of(b);
  std::vector<ProblemCount> left, right;
  for (const auto& [id, count] : ours) {
    const auto found = theirs.find(id);
    if (found == theirs.end()) continue;
    left.push_back(count);
    right.push_back(found->second);
  }
  return paired_difference(left, right);
}

std::string signed_percent(double share) {
  return std::isfinite(share) ? fmt::format("{:+.1f}", 100 * share) : "-";
}

std::string signed_interval(const Interval& interval) {
  if (!std::isfinite(interval.low)) return "-";
  return fmt::format("[{:+.1f}, {:+.1f}]", 100 * interval.low, 100 * interval.high);
}

Json to_json(const Difference& difference) {
  const auto number = [](double value) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
  };
  return {{"difference", number(difference.mean)},
          {"interval", {number(difference.interval.low), number(difference.interval.high)}},
          {"problems", difference.problems}};
}

}  // namespace

PairedComparison compare_evaluations(const fs::path& a, const fs::path& b) {
  const EvalSummary ours = read_summary(a / kSummaryFile);
  const EvalSummary theirs = read_summary(b / kSummaryFile);
  PairedComparison comparison;
  std::vector<Estimate> estimates;
  for (const auto& [name, bench] : ours.benches) {
    if (theirs.find(name) == nullptr) {
      comparison.missing.push_back(name);
      continue;
    }
    const Difference difference = difference_of(a / (name + ".jsonl"), b / (name + ".jsonl"));
    comparison.benches.emplace_back(name, difference);
    estimates.push_back({difference.mean, difference.interval});
    comparison.average.problems += difference.problems;
  }
  for (const auto& [name, bench] : theirs.benches)
    if (ours.find(name) == nullptr) comparison.missing.push_back(name);
  if (estimates.empty()) {
    throw InputError(fmt::format("it has no benchmark in common with {}", a.string()),
                     {.where = b.string(), .remedy = "evaluate both on the same benchmarks"});
  }
  double sum = 0;
  for (const Estimate& estimate : estimates)
    sum += estimate.value;
  comparison.average.mean = sum / static_cast<double>(estimates.size());
  comparison.average.interval = average_interval(estimates);
  return comparison;
}

std::string paired_text(const PairedComparison& comparison) {
  TextTable table;
  table.add({"difference", "problems", "points", "95 %"});
  const auto add = [&](const std::string& name, const Difference& difference) {
    table.add({name, std::to_string(difference.problems), signed_percent(difference.mean),
               signed_interval(difference.interval)});
  };
  for (const auto& [name, difference] : comparison.benches)
    add(name, difference);
  if (comparison.benches.size() > 1) add("average", comparison.average);
  std::string text = table.text();
  if (!comparison.missing.empty())
    text += fmt::format("only one has {}\n", fmt::join(comparison.missing, ", "));
  return text;
}

Json to_json(const PairedComparison& comparison) {
  Json benches = Json::object();
  for (const auto& [name, difference] : comparison.benches)
    benches[name] = to_json(difference);
  return {{"benches", std::move(benches)},
          {"average", to_json(comparison.average)},
          {"missing", comparison.missing}};
}

}  // namespace antisd::inline eval
