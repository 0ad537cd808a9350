#include "sweep/arms.h"

#include <algorithm>

#include <fmt/format.h>

#include "io/atomic_file.h"
#include "sweep/run_view.h"

namespace antisd {
namespace {

namespace fs = std::filesystem;

std::optional<Interval> interval_over_problems(const fs::path& run, std::int64_t step) {
  const fs::path file = run / "eval" / fmt::format("step-{:06}", step) / "summary.json";
  try {
    if (!fs::exists(file)) return std::nullopt;
    const Json summary = parse_json(read_file(file), file.string());
    const Json& interval = summary.at("average_interval");
    return Interval{interval.at(0).get<double>(), interval.at(1).get<double>()};
  } catch (const std::exception&) {  // another program's file, or a torn one
    return std::nullopt;
  }
}

SeedOutcome read_seed(const PlannedRun& run) {
  RunView view(run.directory);
  view.refresh();
  SeedOutcome outcome{.seed = run.grid.seed,
                      .accuracy = view.accuracy(),
                      .last_over_problems = {},
                      .tokens = view.tokens(),
                      .steps = view.step(),
                      .steps_open = view.steps_open()};
  for (const GateEvent& event : view.gate_events())
    outcome.gate_closings += event.opened ? 0 : 1;
  if (!outcome.accuracy.empty())
    outcome.last_over_problems =
        interval_over_problems(run.directory, outcome.accuracy.back().step);
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

}  // namespace antisd
