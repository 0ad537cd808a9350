#include "report/inspect/clustered_means.h"

#include <algorithm>
#include <cmath>

#include "eval/results/interval.h"

namespace antisd::inline report {

void ClusteredMeans::add(std::int64_t key, std::int64_t cluster, double value) {
  std::vector<Cell>& cells = cells_[key];
  auto at = std::lower_bound(cells.begin(), cells.end(), cluster,
                             [](const Cell& cell, std::int64_t c) { return cell.cluster < c; });
  if (at == cells.end() || at->cluster != cluster) at = cells.insert(at, {cluster, 0, 0});
  ++at->count;
  at->sum += value;
}

void ClusteredMeans::merge_clusters() {
  for (auto& [key, cells] : cells_) {
    Cell all;
    for (const Cell& cell : cells) {
      all.count += cell.count;
      all.sum += cell.sum;
    }
    cells.assign(1, all);
  }
}

ClusteredMean ClusteredMeans::of(std::int64_t key) const {
  ClusteredMean mean;
  const auto at = cells_.find(key);
  if (at == cells_.end()) return mean;
  double sum = 0;
  for (const Cell& cell : at->second) {
    mean.count += cell.count;
    sum += cell.sum;
  }
  mean.clusters = std::ssize(at->second);
  const double total = static_cast<double>(mean.count);
  mean.mean = sum / total;
  if (mean.clusters < 2) return mean;
  double squares = 0;
  for (const Cell& cell : at->second)
    squares += std::pow(cell.sum - static_cast<double>(cell.count) * mean.mean, 2);
  const double m = static_cast<double>(mean.clusters);
  const double half = student_quantile(m - 1) * std::sqrt(m / (m - 1) * squares) / total;
  mean.low = mean.mean - half;
  mean.high = mean.mean + half;
  return mean;
}

std::vector<std::int64_t> ClusteredMeans::keys() const {
  std::vector<std::int64_t> keys;
  for (const auto& [key, cells] : cells_)
    keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace antisd::inline report
