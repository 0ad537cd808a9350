// Means of many small groups of values with 95 % intervals that account for clusters: tokens of one
// problem are not independent.
//
//   ClusteredMeans by_token;
//   by_token.add(id, cluster, u);
//   const ClusteredMean mean = by_token.of(id);   // mean +- t sqrt(variance)
//
// With cluster sums S_c of n_c values, mean = sum S_c / N and
//   variance = m / (m - 1) * sum (S_c - n_c mean)^2 / N^2     over m clusters,
// the sandwich estimate; t is the 97.5 % quantile of Student's distribution, m - 1 degrees of
// freedom.
#pragma once

#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

namespace antisd::inline report {

struct ClusteredMean {
  std::int64_t count = 0;
  std::int64_t clusters = 0;
  double mean = std::numeric_limits<double>::quiet_NaN();
  double low = std::numeric_limits<double>::quiet_NaN();  // NaN with fewer than two clusters
  double high = std::numeric_limits<double>::quiet_NaN();
};

class ClusteredMeans {
 public:
  void add(std::int64_t key, std::int64_t cluster, double value);
  // Makes everything added so far one cluster, number 0.
  void merge_clusters();

  ClusteredMean of(std::int64_t key) const;
  std::vector<std::int64_t> keys() const;  // ascending

 private:
  struct Cell {
    std::int64_t cluster = 0, count = 0;
    double sum = 0;
  };
  std::unordered_map<std::int64_t, std::vector<Cell>> cells_;  // by cluster, ascending
};

}  // namespace antisd::inline report
