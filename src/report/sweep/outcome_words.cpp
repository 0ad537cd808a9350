#include "report/sweep/outcome_words.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace antisd::inline report {
namespace {

struct Ends {
  double first, last;
};

// Means over the seeds that were evaluated.
std::optional<Ends> ends_of(const ArmOutcome& arm) {
  Ends ends{};
  int count = 0;
  for (const SeedOutcome& seed : arm.seeds) {
    if (seed.accuracy.empty()) continue;
    ends.first += seed.accuracy.front().average;
    ends.last += seed.accuracy.back().average;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return Ends{ends.first / count, ends.last / count};
}

std::optional<Interval> interval_of(const ArmOutcome& arm) {
  if (arm.seeds.size() == 1) return arm.seeds[0].last_over_problems;
  const std::vector<double> values = last_accuracies(arm);
  return values.empty() ? std::nullopt : mean_over_seeds(values).interval;
}

std::string against(const ArmOutcome& arm, const ArmOutcome& baseline) {
  const std::optional<MeanOverSeeds> difference = difference_by_seed(arm, baseline);
  if (!difference) return "";
  const double points = 100 * difference->mean;
  if (std::abs(points) < 0.05) return fmt::format(", the same as {}", baseline.name);
  std::string text = fmt::format(", {:.1f} points {} {}", std::abs(points),
                                 points > 0 ? "above" : "below", baseline.name);
  if (const auto& interval = difference->interval) {
    text += fmt::format("; the difference's 95 % interval is {:+.1f} to {:+.1f}",
                        100 * interval->low, 100 * interval->high);
    if (interval->low <= 0 && interval->high >= 0)
      text += ", which includes 0: this does not show that one is better";
  }
  return text;
}

std::string gate_words(const ArmOutcome& arm) {
  const auto [steps, open, closings] = gate_totals(arm);
  if (open == 0) return "";
  std::string text = fmt::format(" Its term was on in {} of {} steps", open, steps);
  if (closings > 0)
    text += fmt::format("; a gate closed {} time{}", closings, closings > 1 ? "s" : "");
  return text + ".";
}

std::string sentence(const ArmOutcome& arm, const ArmOutcome* baseline) {
  const std::optional<Ends> ends = ends_of(arm);
  if (!ends) return fmt::format("{}: no evaluation.", arm.name);
  std::string text = fmt::format(
      "{}: solved {:.1f} % of the held-out problems before training and "
      "{:.1f} % after it",
      arm.name, 100 * ends->first, 100 * ends->last);
  if (const std::optional<Interval> interval = interval_of(arm))
    text +=
        fmt::format(" (95 % interval {:.1f} to {:.1f})", 100 * interval->low, 100 * interval->high);
  if (baseline != nullptr && baseline != &arm) text += against(arm, *baseline);
  return text + "." + gate_words(arm);
}

}  // namespace

std::string outcome_words(std::span<const ArmOutcome> arms, const std::string& baseline) {
  const auto found = std::find_if(arms.begin(), arms.end(),
                                  [&](const ArmOutcome& arm) { return arm.name == baseline; });
  const ArmOutcome* const base = found == arms.end() ? nullptr : &*found;
  std::string text;
  if (base != nullptr) text += sentence(*base, base) + "\n";
  for (const ArmOutcome& arm : arms) {
    if (&arm != base) text += sentence(arm, base) + "\n";
  }
  if (arms.size() > 1 && std::all_of(arms.begin(), arms.end(),
                                     [](const ArmOutcome& arm) { return arm.seeds.size() == 1; }))
    text +=
        "One run each: with another seed the order may differ; --seeds 0-4 trains five of each.\n";
  return text;
}

}  // namespace antisd::inline report
