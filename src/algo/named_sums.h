// What the tokens of an update add up to, by name: fed response by response, added up over
// micro-batches, mini-batches and processes.
//
//   NamedSums sums;
//   sums["u"].add(t - s);                        // made on first use
//   sums.mean("u");                              // NaN of nothing
//
// Whoever adds something names it; summing over processes (trainer/updater.h) and adding up do not
// know the names. A sum whose name has a slash ("actor/my_loss") is a metric: its mean goes into
// the row of the step.
#pragma once

#include <deque>
#include <span>
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

  // As one message for other processes, names included: what add_message() reads. Messages of
  // several processes may stand one behind the other.
  std::vector<double> message() const;
  void add_message(std::span<const double> message);

  // In the order of their first use.
  const std::deque<std::pair<std::string, Moments>>& values() const { return sums_; }

 private:
  std::deque<std::pair<std::string, Moments>> sums_;
};

}  // namespace antisd::inline algo
