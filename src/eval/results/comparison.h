// The paper's summary for any set of runs: each at its peak checkpoint, per benchmark, with the
// average, its step, and the speedup over the GRPO run.
//
//   const Comparison comparison = compare_runs({read_run_results("runs/grpo"), ...});
//   std::cout << comparison_text(comparison);
//
// Runs may differ in benchmarks and steps. An average is over the benchmarks of its run, and is
// marked if the table has more. A speedup is over the benchmarks of both runs, marked likewise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "algo/evaluation.h"
#include "eval/results/run_results.h"

namespace antisd::inline eval {

struct ComparisonRow {
  std::string name;                  // of the run, or "base": the model before training
  std::string method;                // "" for base
  std::optional<std::int64_t> step;  // of the peak: first maximum of the average after step 0
  std::optional<EvalSummary> peak;   // the evaluation there; nothing: none is complete
  bool partial = false;              // the average is over fewer benchmarks than the table has
  std::vector<EvaluatedStep> curve;  // averages over the run's benchmarks, by step
  std::string baseline;              // name of the GRPO run of the speedup; "" where there is none
  std::string speedup = "-";         // "6.7"; "x": never; "-": nothing to compare
  bool speedup_partial = false;      // over fewer benchmarks than the table has
  std::vector<std::string> notes;    // evaluations that were skipped, and why
};

struct Comparison {
  std::vector<std::string> benches;  // of all runs, in the order they were first seen
  std::vector<ComparisonRow> rows;   // base models first, then the runs as they were given
};

// A run's baseline is a GRPO run with a common benchmark, of the same model and seed if there is
// one: runs of one seed see the same problems in the same order. Base rows come from runs that
// started from the model itself, not from another run's checkpoint.
Comparison compare_runs(const std::vector<RunResults>& runs);

// Percentages in a table; then pass@k at the peaks, one line per benchmark and run; then notes.
std::string comparison_text(const Comparison& comparison);
// One line per row and benchmark, as fractions:
// run,method,step,benchmark,problems,n,avg,low,high,truncated,mean_tokens,extraction_failed,
// grader_failed,speedup ("average" is its own benchmark).
std::string comparison_csv(const Comparison& comparison);
// run,method,step,benchmark,k,pass,low,high
std::string pass_curves_csv(const Comparison& comparison);
// A booktabs tabular with the best of each column in bold; needs \usepackage{booktabs}.
std::string comparison_latex(const Comparison& comparison);

}  // namespace antisd::inline eval
