#include "report/sweep/outcome.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/check.h"
#include "core/error.h"
#include "eval/results/paired.h"

namespace antisd::inline report {
namespace {

const SeedOutcome* find_seed(const ArmOutcome& arm, const std::string& seed) {
  for (const SeedOutcome& outcome : arm.seeds) {
    if (outcome.seed == seed && !outcome.accuracy.empty()) return &outcome;
  }
  return nullptr;
}

double last_accuracy(const SeedOutcome& outcome) {
  return outcome.accuracy.back().average;
}

std::string interval_text(const std::optional<Interval>& interval) {
  return interval ? fmt::format(" [{:.3f}, {:.3f}]", interval->low, interval->high) : "";
}

std::string accuracy_text(const ArmOutcome& arm) {
  const std::vector<double> values = last_accuracies(arm);
  if (values.empty()) return "-";
  MeanOverSeeds mean = mean_over_seeds(values);
  if (arm.seeds.size() == 1) mean.interval = arm.seeds[0].last_over_problems;
  return fmt::format("{:.3f}{}", mean.mean, interval_text(mean.interval));
}

std::string by_seed_text(const ArmOutcome& arm) {
  std::string text;
  for (const SeedOutcome& seed : arm.seeds)
    text += (text.empty() ? "" : " ") +
            (seed.accuracy.empty() ? "-" : fmt::format("{:.3f}", last_accuracy(seed)));
  return text;
}

std::string difference_text(const ArmOutcome& arm, const ArmOutcome& baseline) {
  if (&arm == &baseline) return "";
  const std::optional<MeanOverSeeds> difference = difference_by_seed(arm, baseline);
  if (!difference) return "-";
  const auto& interval = difference->interval;
  return fmt::format("{:+.3f}", difference->mean) +
         (interval ? fmt::format(" [{:+.3f}, {:+.3f}]", interval->low, interval->high) : "");
}

// Per seed: the first evaluated step that reaches the best of the same seed's baseline.
std::string reach_text(const ArmOutcome& arm, const ArmOutcome& baseline) {
  std::string text;
  for (const SeedOutcome& seed : arm.seeds) {
    const SeedOutcome* const other = find_seed(baseline, seed.seed);
    std::string part = "-";
    if (other != nullptr && !seed.accuracy.empty()) {
      const double best = peak(other->accuracy).average;
      const auto reached = std::find_if(seed.accuracy.begin(), seed.accuracy.end(),
                                        [&](const EvaluatedStep& e) { return e.average >= best; });
      part = reached == seed.accuracy.end() ? "never" : fmt::format("{}", reached->step);
    }
    text += (text.empty() ? "" : " ") + part;
  }
  return text;
}

std::string gate_text(const ArmOutcome& arm) {
  const auto [steps, open, closings] = gate_totals(arm);
  if (open == 0) return "-";
  return fmt::format("on in {:.0f} % of steps, closed {}x", 100.0 * double(open) / double(steps),
                     closings);
}

// From two evaluations on the same problems; nothing if they cannot be read or compared.
std::optional<Interval> interval_over_problems(const SeedOutcome& own, const SeedOutcome& other) {
  if (own.last_evaluation.empty() || other.last_evaluation.empty()) return std::nullopt;
  try {
    return compare_evaluations(own.last_evaluation, other.last_evaluation).average.interval;
  } catch (const Error&) {
    return std::nullopt;
  }
}

double mean_tokens(const ArmOutcome& arm) {
  double sum = 0;
  for (const SeedOutcome& seed : arm.seeds)
    sum += seed.tokens;
  return arm.seeds.empty() ? NAN : sum / double(arm.seeds.size());
}

using Rows = std::vector<std::vector<std::string>>;  // the first one is the head

std::string to_blocks(const Rows& rows) {
  std::string text;
  for (std::size_t r = 1; r < rows.size(); ++r) {
    text += rows[r][0] + "\n";
    for (std::size_t c = 1; c < rows[r].size(); ++c) {
      if (!rows[r][c].empty()) text += fmt::format("  {}: {}\n", rows[0][c], rows[r][c]);
    }
  }
  return text;
}

std::string to_table(const Rows& rows, int columns) {
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c)
      line += fmt::format("{:<{}}  ", row[c], widths[c]);
    line.erase(line.find_last_not_of(' ') + 1);
    if (std::ssize(line) > columns) return to_blocks(rows);
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::vector<double> last_accuracies(const ArmOutcome& arm) {
  std::vector<double> values;
  for (const SeedOutcome& seed : arm.seeds) {
    if (!seed.accuracy.empty()) values.push_back(last_accuracy(seed));
  }
  return values;
}

GateTotals gate_totals(const ArmOutcome& arm) {
  GateTotals totals;
  for (const SeedOutcome& seed : arm.seeds) {
    totals.steps += seed.steps;
    totals.open += seed.steps_open;
    totals.closings += seed.gate_closings;
  }
  return totals;
}

MeanOverSeeds mean_over_seeds(std::span<const double> values) {
  ANTISD_CHECK(!values.empty());
  const double n = static_cast<double>(values.size());
  MeanOverSeeds result;
  for (const double value : values)
    result.mean += value / n;
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values)
    squares += (value - result.mean) * (value - result.mean);
  const double half = student_quantile(n - 1) * std::sqrt(squares / (n - 1) / n);
  result.interval = Interval{result.mean - half, result.mean + half};
  return result;
}

std::optional<MeanOverSeeds> difference_by_seed(const ArmOutcome& arm, const ArmOutcome& baseline) {
  std::vector<double> differences;
  std::optional<Interval> over_problems;
  for (const SeedOutcome& seed : arm.seeds) {
    const SeedOutcome* const other = find_seed(baseline, seed.seed);
    if (other == nullptr || seed.accuracy.empty()) continue;
    differences.push_back(last_accuracy(seed) - last_accuracy(*other));
    if (differences.size() == 1) over_problems = interval_over_problems(seed, *other);
  }
  if (differences.empty()) return std::nullopt;
  MeanOverSeeds difference = mean_over_seeds(differences);
  if (differences.size() == 1) difference.interval = over_problems;
  return difference;
}

std::string outcome_table(std::span<const ArmOutcome> arms, const std::string& baseline,
                          int columns) {
  const auto found = std::find_if(arms.begin(), arms.end(),
                                  [&](const ArmOutcome& arm) { return arm.name == baseline; });
  const bool compares = found != arms.end() && arms.size() > 1;
  const bool has_seeds = std::any_of(arms.begin(), arms.end(),
                                     [](const ArmOutcome& arm) { return arm.seeds.size() > 1; });
  std::vector<std::string> head = {"run", "accuracy at the end"};
  if (has_seeds) head.push_back("by seed");
  if (compares) {
    head.push_back("minus " + baseline);
    head.push_back("steps to its best");
  }
  head.insert(head.end(), {"length", "term"});
  Rows rows = {head};
  for (const ArmOutcome& arm : arms) {
    std::vector<std::string> row = {arm.name, accuracy_text(arm)};
    if (has_seeds) row.push_back(by_seed_text(arm));
    if (compares) {
      row.push_back(difference_text(arm, *found));
      row.push_back(reach_text(arm, *found));
    }
    row.push_back(fmt::format("{:.0f}", mean_tokens(arm)));
    row.push_back(gate_text(arm));
    rows.push_back(std::move(row));
  }
  return to_table(rows, columns);
}

}  // namespace antisd::inline report
