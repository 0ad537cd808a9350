// Figures of evaluations: pass@k, peaks and speedups.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace antisd::inline algo {

// The unbiased estimate 1 - C(n-c, k) / C(n, k) from n samples of which c are correct; 1 <= k <= n.
double pass_at_k(std::int64_t n, std::int64_t c, std::int64_t k);

struct EvaluatedStep {
  std::int64_t step = 0;
  double average = 0;  // over the benchmarks
};

// The first of the maxima. `curve` is sorted by step and not empty.
EvaluatedStep peak(std::span<const EvaluatedStep> curve);

// Step of the baseline's peak / first step of `curve` with at least that average; nothing if none
// reaches it. Infinite if that is step 0.
std::optional<double> speedup(std::span<const EvaluatedStep> baseline,
                              std::span<const EvaluatedStep> curve);

// "6.7", or "x" for never, as the paper's tables print it.
std::string speedup_text(std::optional<double> speedup);

}  // namespace antisd::inline algo
