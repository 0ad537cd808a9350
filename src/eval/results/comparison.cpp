#include "eval/results/comparison.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

namespace antisd::inline eval {
namespace {

using Names = std::vector<std::string>;

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void add_new(Names& names, const EvalSummary& summary) {
  for (const auto& [name, bench] : summary.benches)
    if (!contains(names, name)) names.push_back(name);
}

Names benches_of(const RunResults& run) {
  Names names;
  for (const StepEvaluation& evaluation : run.evaluations)
    add_new(names, evaluation.summary);
  return names;
}

// NaN where the evaluation lacks one of them.
double average_over(const EvalSummary& summary, const Names& benches) {
  double sum = 0;
  for (const std::string& name : benches) {
    const BenchSummary* const bench = summary.find(name);
    sum += bench == nullptr ? kNoFigure : bench->avg;
  }
  return benches.empty() ? kNoFigure : sum / static_cast<double>(benches.size());
}

// Evaluations after step 0 that have all of `benches`.
std::vector<EvaluatedStep> curve_over(const RunResults& run, const Names& benches) {
  std::vector<EvaluatedStep> curve;
  for (const auto& [step, summary] : run.evaluations) {
    const double average = average_over(summary, benches);
    if (step > 0 && std::isfinite(average)) curve.push_back({step, average});
  }
  return curve;
}

const StepEvaluation* evaluation_at(const RunResults& run, std::int64_t step) {
  for (const StepEvaluation& evaluation : run.evaluations)
    if (evaluation.step == step) return &evaluation;
  return nullptr;
}

ComparisonRow row_of(const RunResults& run) {
  ComparisonRow row{.name = run.name, .method = run.method, .notes = run.notes};
  const Names own = benches_of(run);
  row.curve = curve_over(run, own);
  for (const auto& [step, summary] : run.evaluations)
    if (!std::isfinite(average_over(summary, own)))
      row.notes.push_back(fmt::format("step {} lacks a benchmark that other steps have", step));
  if (row.curve.empty()) return row;
  row.step = peak(row.curve).step;
  row.peak = evaluation_at(run, *row.step)->summary;
  return row;
}

Names common_benches(const RunResults& a, const RunResults& b) {
  const Names theirs = benches_of(b);
  Names common;
  for (const std::string& name : benches_of(a))
    if (contains(theirs, name)) common.push_back(name);
  return common;
}

// The closest GRPO run: same model and seed, then same model, then any; then one that started from
// the same weights, then one with more common benchmarks, then the first. A run that lacks one of
// this run's benchmarks does not qualify.
const RunResults* baseline_of(const RunResults& run, const std::vector<RunResults>& runs) {
  const RunResults* nearest = nullptr;
  std::tuple<int, bool, std::size_t> best;
  for (const RunResults& other : runs) {
    if (other.method != "grpo") continue;
    const Names common = common_benches(run, other);
    if (curve_over(other, common).empty()) continue;
    const int likeness = other.model != run.model ? 0 : other.seed != run.seed ? 1 : 2;
    const std::tuple found(likeness, other.init_from == run.init_from, common.size());
    if (nearest != nullptr && found <= best) continue;
    best = found;
    nearest = &other;
  }
  return nearest;
}

void set_speedup(ComparisonRow& row, const RunResults& run, const RunResults& baseline,
                 const Names& all) {
  row.baseline = baseline.name;
  const Names common = common_benches(run, baseline);
  const std::vector<EvaluatedStep> best = curve_over(baseline, common);
  const std::vector<EvaluatedStep> curve = curve_over(run, common);
  if (best.empty() || curve.empty()) return;
  row.speedup = speedup_text(speedup(best, curve));
  row.speedup_partial = common.size() < all.size();
}

// The model before training, if it was evaluated; one row for all runs of that model. Step 0 of a
// run that started from another run's checkpoint is not an untrained model.
std::vector<ComparisonRow> base_rows(const std::vector<RunResults>& runs) {
  std::vector<ComparisonRow> rows;
  Names models;
  for (const RunResults& run : runs) {
    const StepEvaluation* const start = evaluation_at(run, 0);
    if (start == nullptr || !run.init_from.empty() || contains(models, run.model)) continue;
    models.push_back(run.model);
    ComparisonRow row{.name = "base", .step = 0, .peak = start->summary};
    row.curve = {{0, start->summary.average}};
    rows.push_back(std::move(row));
  }
  if (rows.size() > 1)
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i].name = fmt::format("base {}", models[i]);
  return rows;
}

}  // namespace

Comparison compare_runs(const std::vector<RunResults>& runs) {
  Comparison comparison;
  for (const RunResults& run : runs)
    for (const StepEvaluation& evaluation : run.evaluations)
      add_new(comparison.benches, evaluation.summary);
  comparison.rows = base_rows(runs);
  for (const RunResults& run : runs) {
    ComparisonRow row = row_of(run);
    if (const RunResults* const baseline = baseline_of(run, runs))
      set_speedup(row, run, *baseline, comparison.benches);
    comparison.rows.push_back(std::move(row));
  }
  for (ComparisonRow& row : comparison.rows)
    row.partial = row.peak && row.peak->benches.size() < comparison.benches.size();
  return comparison;
}

}  // namespace antisd::inline eval
