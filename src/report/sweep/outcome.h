// The outcome of a sweep: each arm's held-out accuracy over its seeds, compared with a baseline
// seed by seed.
//
//   const std::vector<ArmOutcome> arms = read_arms(runs);  // report/sweep/arms.h
//   std::cout << outcome_table(arms, "grpo");
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "algo/evaluation.h"
#include "eval/results/interval.h"

namespace antisd::inline report {

struct SeedOutcome {
  std::string seed;
  std::vector<EvaluatedStep> accuracy;         // on held-out problems, by step
  std::optional<Interval> last_over_problems;  // 95 % interval of the last one, if known
  std::filesystem::path last_evaluation = {};  // its folder; empty if there is none
  double tokens = 0;                           // mean length of the last step's responses
  std::int64_t steps = 0, steps_open = 0;      // steps with lambda > 0
  std::int64_t gate_closings = 0;
};

struct ArmOutcome {
  std::string name;
  std::vector<SeedOutcome> seeds;
};

// Final accuracies of the evaluated seeds.
std::vector<double> last_accuracies(const ArmOutcome& arm);

// Over all seeds.
struct GateTotals {
  std::int64_t steps = 0, open = 0, closings = 0;
};
GateTotals gate_totals(const ArmOutcome& arm);

struct MeanOverSeeds {
  double mean = 0;
  std::optional<Interval> interval;  // 95 %, Student's t; nothing for a single seed
};
MeanOverSeeds mean_over_seeds(std::span<const double> values);

// arm - baseline at the end, over the seeds that both have; nothing if there is none. The interval
// of a single seed is over the problems, paired.
std::optional<MeanOverSeeds> difference_by_seed(const ArmOutcome& arm, const ArmOutcome& baseline);

// One line per arm: final accuracy with interval and by seed, difference from the baseline, steps
// to the baseline's best, length, gate. Without the baseline among the arms, its columns are left
// out. If a line would have more than `columns` characters, each figure has its own line.
std::string outcome_table(std::span<const ArmOutcome> arms, const std::string& baseline,
                          int columns = std::numeric_limits<int>::max());

}  // namespace antisd::inline report
