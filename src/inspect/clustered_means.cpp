#include "inspect/clustered_means.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/check.h"

namespace antisd {
namespace {

// P(|T| <= t), a finite sum for whole degrees of freedom.
double two_sided(double t, std::int64_t degrees) {
  const double angle = std::atan(t / std::sqrt(static_cast<double>(degrees)));
  const double cosine = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? cosine : 1, sum = degrees > 1 ? term : 0;
  for (std::int64_t k = odd ? 3 : 2; k < degrees; k += 2) {
    term *= cosine * cosine * static_cast<double>(k - 1) / static_cast<double>(k);
    sum += term;
  }
  const double sine = std::sin(angle) * sum;
  return odd ? 2 / std::numbers::pi * (angle + sine) : sine;
}

}  // namespace

double student_975(std::int64_t degrees) {
  ANTISD_CHECK_LE(1, degrees);
  constexpr double z = 1.959963984540054;
  if (degrees > 200) {  // the expansion in 1 / degrees is exact to 1e-8 there
    const double n = static_cast<double>(degrees);
    return z + (std::pow(z, 3) + z) / (4 * n) +
           (5 * std::pow(z, 5) + 16 * std::pow(z, 3) + 3 * z) / (96 * n * n);
  }
  double low = z, high = 13;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (two_sided(middle, degrees) < 0.95 ? low : high) = middle;
  }
  return low;
}

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
  const double half = student_975(mean.clusters - 1) * std::sqrt(m / (m - 1) * squares) / total;
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

}  // namespace antisd
