#include "algo/evaluation.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/check.h"

namespace antisd::inline algo {

double pass_at_k(std::int64_t n, std::int64_t c, std::int64_t k) {
  ANTISD_CHECK(0 <= c && c <= n);
  ANTISD_CHECK(1 <= k && k <= n);
  // C(n-c, k) / C(n, k) as a product, which neither overflows nor cancels.
  double all_wrong = 1;
  for (std::int64_t i = n - c + 1; i <= n; ++i)
    all_wrong *= std::max(0.0, 1 - static_cast<double>(k) / static_cast<double>(i));
  return 1 - all_wrong;
}

EvaluatedStep peak(std::span<const EvaluatedStep> curve) {
  ANTISD_CHECK(!curve.empty());
  return *std::max_element(curve.begin(), curve.end(),
                           [](const auto& a, const auto& b) { return a.average < b.average; });
}

std::optional<double> speedup(std::span<const EvaluatedStep> baseline,
                              std::span<const EvaluatedStep> curve) {
  const EvaluatedStep best = peak(baseline);
  for (const EvaluatedStep& evaluated : curve) {
    if (evaluated.average >= best.average)
      return static_cast<double>(best.step) / static_cast<double>(evaluated.step);
  }
  return std::nullopt;
}

std::string speedup_text(std::optional<double> speedup) {
  return speedup ? fmt::format("{:.1f}", *speedup) : "x";
}

}  // namespace antisd::inline algo
