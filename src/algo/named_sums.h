// What the tokens of an update add up to, by name: fed response by response, over micro-batches and
// mini-batches.
//
//   NamedSums sums;
//   sums["u"].add(t - s);                        // made on first use
//   sums.mean("u");                              // NaN of nothing
//
// Whoever adds something names it; adding up does not know the names. A sum whose name has a slash
// ("actor/my_loss") is a metric: its mean goes into the row of the step.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algo/moments.h"

namespace antisd::inline algo {

class NamedSums {
 public:
  // References stay valid while others are added.
  Moments& operator[](std::string_view name);
  // Moments of nothing where there is no such sum.
  const Moments& at(std::string_view name) const;

  double mean(std::string_view name) const { return at(name).mean(); }
  void add(const NamedSums& other);

  // In the order of their first use.
  const std::deque<std::pair<std::string, Moments>>& values() const { return sums_; }

 private:
  std::deque<std::pair<std::string, Moments>> sums_;
};

}  // namespace antisd::inline algo
