#include "report/sweep/arms.h"

#include <algorithm>

#include "eval/results/run_results.h"
#include "report/sweep/run_figures.h"
#include "run/run_files.h"

namespace antisd::inline report {
namespace {

constexpr std::int64_t kReadBytes = 64 << 20;  // at a time

SeedOutcome read_seed(const PlannedRun& run) {
  RunReader reader(run.grid.name, Folder(run.directory));
  while (reader.refresh(kReadBytes).more) {
  }
  RunFigures figures = figures_of(reader.table());
  SeedOutcome outcome{.seed = run.grid.seed,
                      .accuracy = std::move(figures.accuracy),
                      .last_over_problems = {},
                      .tokens = figures.tokens,
                      .steps = figures.step,
                      .steps_open = figures.steps_open,
                      .gate_closings = figures.gate_closings};
  const RunResults results = read_run_results(run.directory);
  if (!results.evaluations.empty()) {
    const StepEvaluation& last = results.evaluations.back();
    outcome.last_over_problems = last.summary.average_interval;
    outcome.last_evaluation = run.directory / evaluation_folder(last.step);
  }
  return outcome;
}

}  // namespace

std::vector<ArmOutcome> read_arms(const std::vector<PlannedRun>& runs) {
  std::vector<ArmOutcome> arms;
  for (const PlannedRun& run : runs) {
    SeedOutcome outcome = read_seed(run);
    if (outcome.steps == 0 && outcome.accuracy.empty()) continue;
    auto arm = std::find_if(arms.begin(), arms.end(),
                            [&](const ArmOutcome& a) { return a.name == run.grid.arm; });
    if (arm == arms.end()) arm = arms.insert(arms.end(), ArmOutcome{run.grid.arm, {}});
    arm->seeds.push_back(std::move(outcome));
  }
  return arms;
}

}  // namespace antisd::inline report
