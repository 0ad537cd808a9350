#include "inference/token_runs.h"

#include <algorithm>
#include <numeric>

namespace antisd::inline inference {
namespace {

// The length at which attention takes about as long as the products of a layer.
constexpr double kEvenTokens = 16'384;

std::vector<IndexRange> cut_by_cost(std::span<const double> costs, double most) {
  std::vector<IndexRange> runs;
  double cost = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (runs.empty() || cost + costs[i] > most) {
      runs.push_back({i, i});
      cost = 0;
    }
    cost += costs[i];
    runs.back().end = i + 1;
  }
  return runs;
}

}  // namespace

std::vector<IndexRange> cut_runs(std::span<const RunItem> items, const RunLimits& limits) {
  std::vector<IndexRange> runs;
  std::int64_t tokens = 0;  // of the run so far; shared ones count once
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto& [own, shared] = items[i];
    const bool long_enough = limits.enough > 0 && tokens >= std::max(limits.enough, 16 * shared);
    if (runs.empty() || long_enough || tokens + own - shared > limits.most) {
      runs.push_back({i, i});
      tokens = own;
    } else {
      tokens += own - shared;
    }
    runs.back().end = i + 1;
  }
  return runs;
}

std::vector<IndexRange> cut_evenly(std::span<const RunItem> items, std::int64_t most) {
  if (items.empty()) return {};
  std::vector<double> costs;
  for (const RunItem& item : items) {
    const auto own = static_cast<double>(item.tokens - item.shared);
    costs.push_back(own + own * static_cast<double>(item.tokens) / kEvenTokens);
  }
  // The smallest cost of a run that needs no more runs than asked for, by halving.
  double low = *std::ranges::max_element(costs);
  double high = std::accumulate(costs.begin(), costs.end(), 0.0);
  if (std::ssize(cut_by_cost(costs, low)) <= most) return cut_by_cost(costs, low);
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (std::ssize(cut_by_cost(costs, middle)) <= most ? high : low) = middle;
  }
  return cut_by_cost(costs, high);
}

std::vector<std::size_t> deal_runs(std::span<const RunItem> items, std::span<const IndexRange> runs,
                                   std::size_t parts) {
  std::vector<std::int64_t> tokens(parts, 0);
  std::vector<std::size_t> dealt;
  for (const IndexRange& run : runs) {
    const auto least = std::ranges::min_element(tokens);
    for (std::size_t i = run.begin; i < run.end; ++i)
      *least += items[i].tokens - (i > run.begin ? items[i].shared : 0);
    dealt.push_back(static_cast<std::size_t>(least - tokens.begin()));
  }
  return dealt;
}

}  // namespace antisd::inline inference
